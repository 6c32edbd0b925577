"""How many graphs a program has in flight on a simulated card that takes its time for them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench.harness import Bench
from bench.isolation.place import Container, Place, a_place
from bench.isolation.programs import programs
from partage_simgpu.build import built

MS: Final = 1_000_000
LENGTHS: Final = {1_000: 2_000, 20_000: 2_000, 100_000: 600, MS: 100, 5 * MS: 30}
"""Launches by nanoseconds of one."""
IN_TURNS: Final = (1_000, 20_000, 100_000)
"""A turn has few of longer ones, and how many were in flight in one can't be told from the time since a launch."""
FREE_NS, LEASE_NS = 50 * MS, MS
"""Of the card's time that may be in flight (isolation/preload/compute/window.c)."""
NEAR: Final = 0.8
_TURNS: Final = 20
_SMOKE_TURNS: Final = 2
_HALF: Final = 500
_MIB: Final = 1024
_WITHIN_S: Final = 300


@dataclass(frozen=True)
class Found:
    total: int
    depth: int
    cpu_ns: float


def depths(bench: Bench) -> None:
    """Without the library, alone on the card, and in turns with a flood."""
    with a_place(cards=("h100",)) as place:
        one, other = (place.container(memory_mib=_MIB, share=_HALF) for _ in range(2))
        for ns, launches in LENGTHS.items():
            bare = _run(bench, place.isolation.node.environment, ns, launches)
            free = _run(bench, one.environment, ns, launches)
            bench.engaged("the program sees its limit", free.total == one.limit)
            _told(bench, f"graphs of {ns / 1_000:g} us, alone", bare, free, FREE_NS // ns)
        with _flood(place, other):
            for ns in IN_TURNS:
                lent = _run(bench, one.environment, ns, LENGTHS[ns])
                _told(bench, f"graphs of {ns / 1_000:g} us, in turns", None, lent, min(LEASE_NS // ns, LENGTHS[ns]))


def _told(bench: Bench, name: str, bare: Found | None, found: Found, fits: int) -> None:
    if bare is not None:
        bench.figure(f"{name}: in flight without the library", bare.depth)
    wanted = min(bare.depth, fits) if bare is not None else fits
    bench.bar(f"{name}: in flight", found.depth, at_least=NEAR * wanted, unit="graphs")
    bench.figure(f"{name}: processor for a launch, ns", found.cpu_ns)


def _run(bench: Bench, environment: Mapping[str, str], ns: int, launches: int) -> Found:
    turns = _SMOKE_TURNS if bench.smoke else _TURNS
    argv = [str(each) for each in (programs() / "depth", "graph", ns, launches, turns)]
    done = subprocess.run(argv, env=dict(environment), capture_output=True, text=True, check=False, timeout=_WITHIN_S)
    if done.returncode:
        raise SystemExit(f"depth ended with {done.returncode}: {done.stderr}")
    return Found(**json.loads(done.stdout))


@contextmanager
def _flood(place: Place, container: Container) -> Generator[None]:
    argv = [str(built() / "flood"), "--seconds", str(_WITHIN_S)]
    process = subprocess.Popen(argv, env={**os.environ, **container.environment}, stdout=subprocess.DEVNULL)
    try:
        place.until("the flood has a process on the card", lambda: place.told(container).processes)
        yield
    finally:
        process.kill()
        process.wait()
