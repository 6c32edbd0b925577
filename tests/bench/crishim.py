"""Latency that crishim adds to calls of a real containerd, beside a typed relay in grpc-go and no proxy, in turns.

The relay is the usual implementation: it decodes and encodes every message. All three are measured within each round by
one client, a Go program that calls as kubelet does; the figures are differences within rounds.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.harness import Bench
from bench.splicing.places import Caller, Figures, added, ratio, serving
from bench.splicing.programs import build
from rig.lone import lone_runtime

SERVE: Final = Path(__file__).parent / "splicing/serve.py"
METHODS: Final = ("Version", "Status", "ListContainers")
ROUNDS: Final = 20
SECONDS: Final = 0.4
IN_FLIGHT: Final = 16
SMOKE: Final = {"rounds": 2, "seconds": 0.1}
FULL: Final = {"rounds": ROUNDS, "seconds": SECONDS}
US: Final = 1e3


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
