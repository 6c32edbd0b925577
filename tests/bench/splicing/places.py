"""Processes between a client and a runtime, and calls through each of them in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

import msgspec

from rig.client.wait import found
from rig.patience import patience_s
from support.procfs import cpu_s


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
