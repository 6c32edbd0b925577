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
from typing import Final

from bench.harness import Bench
from bench.isolation.costs import Engaged, measured
from bench.isolation.depths import depths, short_kernels
from bench.isolation.lease import CARDS, LIMIT, Lending, Time, lending
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
