"""Latency that crishim adds to calls of a real containerd, beside a typed relay in grpc-go and no proxy, in turns.

The relay is the usual implementation: it decodes and encodes every message. All three are measured within each round by
one client, a Go program that calls as kubelet does; the figures are differences within rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, cast

import msgspec

from bench.harness import Bench
from bench.splicing.programs import build
from rig.client.wait import found
from rig.lone import lone_runtime
from rig.patience import patience_s
from support.procfs import cpu_s

SERVE: Final = Path(__file__).parent / "splicing/serve.py"
METHODS: Final = ("Version", "Status", "ListContainers")
ROUNDS: Final = 20
SECONDS: Final = 0.4
IN_FLIGHT: Final = 16
SMOKE: Final = {"rounds": 2, "seconds": 0.1}
FULL: Final = {"rounds": ROUNDS, "seconds": SECONDS}
US: Final = 1e3


class Figures(msgspec.Struct):
    """The client's measurements of one target, one value per round."""

    calls: int
    p50_us: list[float]
    p99_us: list[float]
    per_second: list[float]


@dataclass(frozen=True)
class Place:
    socket: Path
    process: subprocess.Popen[bytes]

    @property
    def worked_s(self) -> float:
        return cpu_s(self.process.pid)

    def end(self) -> Mapping[str, Any]:
        """Stops it; returns its final report."""
        self.process.terminate()
        said, _ = self.process.communicate(timeout=patience_s())
        return cast("Mapping[str, Any]", json.loads(said or b"{}"))


@contextmanager
def serving(argv: Sequence[str | Path], socket: Path) -> Generator[Place]:
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )

    def serves() -> bool:
        if process.poll() is not None:
            raise SystemExit(f"bench crishim: {' '.join(map(str, argv))} has ended")
        return socket.exists()

    try:
        found(f"{' '.join(map(str, argv))} serves", serves)
        yield Place(socket, process)
    finally:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Caller:
    program: Path
    targets: Mapping[str, Path]

    def at(self, name: str) -> Caller:
        return Caller(self.program, {name: self.targets[name]})

    def call(self, **flags: float | str) -> dict[str, Figures]:
        targets = [f"-target={name}={path}" for name, path in self.targets.items()]
        given = [f"-{name.replace('_', '-')}={value}" for name, value in flags.items()]
        done = subprocess.run([self.program, *given, *targets], stdout=subprocess.PIPE, check=True)
        return msgspec.json.decode(done.stdout, type=dict[str, Figures])


def added(figures: Mapping[str, Figures], name: str) -> float:
    """A target's addition to the median of a direct call: the median over rounds of the difference within each."""
    pairs = zip(figures[name].p50_us, figures["straight"].p50_us, strict=True)
    return median(there - straight for there, straight in pairs)


def ratio(figures: Mapping[str, Figures], one: str, other: str) -> float:
    """Calls per second at one target relative to another."""
    pairs = zip(figures[one].per_second, figures[other].per_second, strict=True)
    return median(here / there for here, there in pairs)


def quiet(_: str) -> None:
    """Output about building the rig is no result."""


def measure_latency(bench: Bench, caller: Caller) -> None:
    for method in METHODS:
        found = caller.call(method=method, in_flight=1, **(SMOKE if bench.smoke else FULL))
        keep(bench, f"{method}, one at a time", found)
        ours = bench.figure(f"{method}: added by crishim, us", added(found, "crishim"))
        theirs = bench.figure(f"{method}: added by the relay, us", added(found, "relay"))
        bench.bar(f"{method}: added p50 over that of the relay", ours / theirs, at_most=0.5, unit="times")


def measure_throughput(bench: Bench, caller: Caller) -> None:
    found = caller.call(method="Version", in_flight=IN_FLIGHT, **(SMOKE if bench.smoke else FULL))
    keep(bench, f"Version, {IN_FLIGHT} in flight", found)
    for name, figures in found.items():
        bench.figure(
            f"calls in a second, {IN_FLIGHT} in flight, {name}",
            sorted(figures.per_second)[len(figures.per_second) // 2],
        )
    times = ratio(found, "crishim", "relay")
    bench.bar(f"calls in a second, {IN_FLIGHT} in flight, over those of the relay", times, at_least=1.2, unit="times")


def keep(bench: Bench, name: str, found: Mapping[str, Figures]) -> None:
    for target, figures in found.items():
        bench.samples(f"{name}, {target}", [p50 * US for p50 in figures.p50_us])


def main() -> int:
    """Measures each in turn, with one containerd. `rewriting` measures rewrites, and `memory` memory."""
    bench = Bench.from_argv("crishim", libraries=["uvloop", "hpack"])
    programs = build()
    with tempfile.TemporaryDirectory() as folder, lone_runtime({}, say=quiet) as runtime:
        upstream = runtime.machine.path(runtime.socket)
        ours, theirs = Path(folder, "crishim.sock"), Path(folder, "relay.sock")
        with (
            serving([sys.executable, SERVE, upstream, ours], ours) as splice,
            serving([programs / "relay", upstream, theirs], theirs) as relay,
        ):
            caller = Caller(programs / "client", {"straight": upstream, "crishim": ours, "relay": theirs})
            measure_latency(bench, caller)
            measure_throughput(bench, caller)
            bench.engaged("the relay had work to do", relay.worked_s > 0)
            bench.engaged("crishim had work to do", splice.worked_s > 0)
            counted = splice.end()
    bench.engaged(
        "calls went through crishim, and none of its connections broke", counted["calls"] > 0 == counted["broken"]
    )
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
