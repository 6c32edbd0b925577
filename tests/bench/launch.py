"""Cost that the library adds to a launch, over a driver that does nothing.

In each round a program launches many times through the driver directly and as often through the library, alternately;
the time is the launching thread's own. The broker is a stand-in that either leaves all cards to the program, or grants
time slices and extends each before it ends. Assertions: before, that the library is active, and afterwards, that no
launch had to wait for a time slice. Times hold on an otherwise idle machine.

Graphs are also launched on a simulated card that takes time for them: as many must be in flight as without the library,
up to the limit of their work, and no more. So are short kernels under a limit.

Published by others, for comparison: a launch takes 2 to 4 us on a real card; HAMi adds 1 to 11 % to one that is waited
for (GPU-Virt-Bench).
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.harness import Bench
from bench.isolation.costs import Engaged, measured
from bench.isolation.lease import CARDS, LIMIT, Lending, Time, lending
from bench.isolation.place import a_place, flooded
from bench.isolation.programs import programs
from bench.measuring.rounds import Difference
from partage_isolation.library.objects import CUDA

CALLS: Final = 10_000_000
EACH: Final = 50_000
SLOW_EACH: Final = 2_000
SMOKE_ROUNDS: Final = 2
MANY: Final = 8

FREE_NS: Final = 2
LEASE_NS: Final = 5
GRAPH_NS: Final = 60

TIMES: Final = {Time.FREE: "free-running", Time.TIMESLICE: "under a lease"}
KINDS: Final = {
    "kernel": "cuLaunchKernel",
    "wide": "cuLaunchKernelEx",
    "cards": "cuLaunchKernel, each time on the other card",
    "graph": "cuGraphLaunch",
}


def look(bench: Bench, place: Lending, engaged: Engaged) -> None:
    """Asserts that the program about to measure is metered."""
    bench.engaged("the program sees its limit", engaged.total == LIMIT)
    bench.engaged("the library answers its calls", engaged.interposed)
    bench.engaged("the library is mapped", engaged.maps(place.library / CUDA))


def measure(bench: Bench, kind: str, time: Time, threads: int = 1) -> Difference:
    each = EACH if kind in {"kernel", "wide"} else SLOW_EACH
    rounds = SMOKE_ROUNDS if bench.smoke else CALLS // EACH // threads
    with lending(time) as place:
        costs = measured(
            place.environment,
            kind,
            place.driver,
            threads,
            rounds,
            each,
            look=lambda engaged: look(bench, place, engaged),
            program="launching",
        )
        cards = CARDS if kind == "cards" else 1
        bench.engaged("it joined the cards that it launched on", place.joined >= cards)
        bench.engaged("no launch had to wait", not place.ended)
    return costs.added("launch")


# ---- Work in flight on a card that takes time for it -----------------------------------------------------------------


MS: Final = 1_000_000
LENGTHS: Final = {1_000: 2_000, 20_000: 2_000, 100_000: 600, MS: 100, 5 * MS: 30}
"""Launches by the duration of one in nanoseconds."""
FREE_IN_FLIGHT_NS, LEASE_IN_FLIGHT_NS = 50 * MS, 5 * MS // 4
"""The part of the card's time that may be in flight (isolation/preload/compute/window.c),"""
ALWAYS: Final = 2
"""and this many graphs of any length: otherwise the card would pause between them."""
NEAR: Final = 0.8
KERNEL_NS, BETWEEN_WAITS = 1_000, 1_000
WAITS: Final = 256
WITH_WAITS: Final = 1.25
ROUNDS: Final = 9
_TURNS: Final = 20
_SMOKE_TURNS: Final = 2
_SMOKE_WAITS: Final = 40
_HALF: Final = 500
_MIB: Final = 1024
_WITHIN_S: Final = 300


@dataclass(frozen=True)
class Found:
    total: int
    depth: int
    cpu_ns: float


def depths(bench: Bench) -> None:
    """Measures without the library, alone on the card, and in turns with a flood."""
    most: dict[int, int] = {}
    with a_place(cards=("h100",)) as place:
        one, other = (place.container(memory_mib=_MIB, share=_HALF) for _ in range(2))
        for ns in LENGTHS:
            bare = _graphs(bench, place.isolation.node.environment, ns)
            bench.figure(f"graphs of {ns / 1_000:g} us: in flight without the library", bare.depth)
            free = _graphs(bench, one.environment, ns)
            bench.engaged("the program sees its limit", free.total == one.limit)
            _told(bench, f"graphs of {ns / 1_000:g} us, alone", free, FREE_IN_FLIGHT_NS // ns, bare.depth)
            most[ns] = bare.depth
        with flooded(place, other):
            for ns in LENGTHS:
                lent = _graphs(bench, one.environment, ns)
                _told(bench, f"graphs of {ns / 1_000:g} us, in turns", lent, LEASE_IN_FLIGHT_NS // ns, most[ns])


def _told(bench: Bench, name: str, found: Found, fits: int, most: int) -> None:
    wanted = min(most, max(fits, ALWAYS))
    bench.bar(f"{name}: in flight", found.depth, at_least=NEAR * wanted, unit="graphs")
    bench.bar(f"{name}: in flight at most", found.depth, at_most=fits + ALWAYS, unit="graphs")
    bench.figure(f"{name}: processor for a launch, ns", found.cpu_ns)


def short_kernels(bench: Bench) -> None:
    """Measures the library under a limit, with a wait after each millisecond of work, in turns with and without it."""
    with a_place(cards=("h100",)) as place:
        one = place.container(memory_mib=_MIB, share=_HALF, limit=_HALF)
        sides = place.isolation.node.environment, one.environment
        rounds = [[_kernels(bench, side) for side in sides] for _ in range(1 if bench.smoke else ROUNDS)]
        told = one.told().cards[0].time
        bench.engaged("the program sees its limit", all(held.total == one.limit for _, held in rounds))
        bench.engaged("it had leases", told is not None and told.timeslices)
    bare, held = (median(found.cpu_ns for found in side) for side in zip(*rounds, strict=True))
    bench.figure("kernels of 1 us without the library, waits between, ns", bare)
    bench.figure("kernels of 1 us under a limit, waits between, ns", held)
    bench.bar("kernels of 1 us under a limit, waits between", held / bare, at_most=WITH_WAITS, unit="of bare")


def _graphs(bench: Bench, environment: Mapping[str, str], ns: int) -> Found:
    return _run(environment, "graph", ns, LENGTHS[ns], _SMOKE_TURNS if bench.smoke else _TURNS)


def _kernels(bench: Bench, environment: Mapping[str, str]) -> Found:
    return _run(environment, "kernel", KERNEL_NS, BETWEEN_WAITS, _SMOKE_WAITS if bench.smoke else WAITS)


def _run(environment: Mapping[str, str], *words: object) -> Found:
    argv = [str(programs() / "depth"), *map(str, words)]
    done = subprocess.run(argv, env=dict(environment), capture_output=True, text=True, check=False, timeout=_WITHIN_S)
    if done.returncode:
        raise SystemExit(f"depth ended with {done.returncode}: {done.stderr}")
    return Found(**json.loads(done.stdout))


def main() -> int:
    """Measures first what is judged first, before the machine's state changes."""
    bench = Bench.from_argv("launch")
    for (time, said), at_most in zip(TIMES.items(), (FREE_NS, LEASE_NS), strict=True):
        added = measure(bench, "kernel", time)
        bench.figure(f"cuLaunchKernel, {said}: without the library, ns", added.reference.median_ns)
        bench.bar(f"cuLaunchKernel, {said}, added", added.median_ns, at_most=at_most, unit="ns")
    for time, said in TIMES.items():
        added = measure(bench, "graph", time)
        bench.bar(f"{KINDS['graph']}, {said}, added", added.median_ns, at_most=GRAPH_NS, unit="ns")
    for kind, (time, said) in itertools.product(("wide", "cards"), TIMES.items()):
        bench.figure(f"{KINDS[kind]}, {said}, added, ns", measure(bench, kind, time).median_ns)
    for time, said in TIMES.items():
        bench.figure(f"{MANY} threads, {said}, added, ns", measure(bench, "kernel", time, MANY).median_ns)
    short_kernels(bench)
    depths(bench)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
