"""Whether containers that share a card get their promised time, and how soon a request is answered.

Unmodified programs run on a simulated card, with the library and a broker; each one's time is the card's own account,
second by second. In turns with our policy run the one that Gemini published, by the same broker with its own parameters
and with those that KubeShare sets, and a card without metering. Each workload's maximum, alone and unmetered, is
measured first: a program that waits for each of its kernels leaves gaps itself.

Bars hold on an otherwise idle machine. A run during which others, or the hypervisor, took more than 2 % of the
processors is repeated, within a limit of time; the number of runs that stayed disturbed is printed. On a machine that
is never quiet, `chrt --rr 1 make bench-share` runs the programs before all others. It takes a quarter of an hour at
most.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from bench.harness import Bench
from bench.sharing.cases import COMPARED, FLOOD, KINDS, MORE, SHORT, SIGMA, SMOKE, TWICE, WAIT, Case, sharer, split
from bench.sharing.place import GEMINI, KUBESHARE, OURS, POLICIES, UNMETERED, Place, a_place
from bench.sharing.seen import Seen
from support.sharing import Sharer

SECONDS: Final = 10
GEMINI_SECONDS: Final = 20
UNMETERED_SECONDS: Final = 5
SMOKE_SECONDS: Final = 1
REACHED_SECONDS: Final = 4
REQUESTS_S: Final = 20
SECONDS_OF: Final = {OURS: SECONDS, GEMINI: GEMINI_SECONDS, KUBESHARE: GEMINI_SECONDS, UNMETERED: UNMETERED_SECONDS}

OFF: Final = 0.02
WHOLE: Final = 0.97
WHOLE_OF_TWO_FLOODS: Final = 0.99
REUSED: Final = 0.95
ALONE: Final = 0.99
P99_OF_GEMINI: Final = 0.08

TRAINING: Final = Sharer("training", 700, "flood", ("--kernel-us", "300"))


def inference(seconds: float) -> Sharer:
    words = ("--rate", "33.333", "--kernels", "6", "--kernel-us", "1000")
    return Sharer("inference", 300, "inference", words, seconds=seconds)


def reached(bench: Bench, free: Place) -> dict[str, float]:
    """Each workload's part of the card, alone and unmetered."""
    kinds = (FLOOD,) if bench.smoke else tuple(KINDS)
    seconds = SMOKE_SECONDS if bench.smoke else REACHED_SECONDS
    found = {kind: free.run(split((1000,), kind), seconds).total for kind in kinds}
    for kind, part in found.items():
        bench.figure(f"{kind}: alone, unmetered", part)
    return found


def told(bench: Bench, place: Place, seen: Seen, reach: Mapping[str, float]) -> None:
    name, off = f"{seen.case.name}, {place.policy}", seen.off(reach)
    sys.stderr.write(f"{name}: {seen.shown()}, off {off:.3f}, sigma {seen.sigma:.3f}\n")
    if place.policy != OURS:
        bench.figure(f"{name}: furthest from its share", off)
        bench.figure(f"{name}: sigma of seconds", seen.sigma)
        bench.figure(f"{name}: sum", seen.total)
        return
    bench.bar(f"{name}: furthest from its share", off, at_most=OFF, unit="of the card")
    bench.bar(f"{name}: sigma of seconds", seen.sigma, at_most=seen.case.most_sigma, unit="of the card")
    if seen.case.is_full:
        least = WHOLE_OF_TWO_FLOODS if seen.case is COMPARED[0] else WHOLE
        bench.bar(f"{name}: sum", seen.total, at_least=least, unit="of the card")
    else:
        bench.figure(f"{name}: sum", seen.total)


def compared(bench: Bench, places: Mapping[str, Place], reach: Mapping[str, float]) -> None:
    """Runs each case under each policy, in turns."""
    for case in COMPARED:
        for policy, place in places.items():
            if policy != KUBESHARE or case in TWICE:
                told(bench, place, place.run(case, lasting(case, SECONDS_OF[policy])), reach)


def lasting(case: Case, seconds: int) -> int:
    return seconds * 3 // 2 if case.most_sigma > SIGMA else seconds


def idle_neighbours_time(bench: Bench, ours: Place) -> None:
    """It requests a millisecond each second; the other gets all other time."""
    idle = Sharer("idle", 500, "inference", ("--rate", "1", "--kernels", "1", "--kernel-us", "1000"))
    case = Case("beside an idle one", (idle, sharer(FLOOD, 500)), (FLOOD, FLOOD), (0.0, 1.0))
    had, reused = ours.run(case, SMOKE_SECONDS if bench.smoke else SECONDS).shares
    bench.bar("an idle neighbour's time that is used", reused / (1 - had), at_least=REUSED, unit="of it")


def alone(bench: Bench, ours: Place, free: Place) -> None:
    """Runs a program with the whole card as its limit, in turns with the same one on an unmetered card."""
    for kind in (FLOOD,) if bench.smoke else (FLOOD, SHORT, WAIT):
        case = split((1000,), kind)
        pairs = [
            (ours.run(case, seconds).total, free.run(case, seconds).total)
            for seconds in ([SMOKE_SECONDS] if bench.smoke else [REACHED_SECONDS] * 3)
        ]
        ratio = sorted(metered / unmetered for metered, unmetered in pairs)[len(pairs) // 2]
        bench.bar(f"{kind}: alone, of what it has unmetered", ratio, at_least=ALONE, unit="of it")


def latencies(bench: Bench, places: Mapping[str, Place]) -> None:
    p99_ms: dict[str, float] = {}
    for policy, place in places.items():
        p50_ms, p99_ms[policy] = place.latency(inference(0.5 if bench.smoke else REQUESTS_S), TRAINING)
        bench.figure(f"requests beside training, {policy}: p50 ms", p50_ms)
        bench.figure(f"requests beside training, {policy}: p99 ms", p99_ms[policy])
    for policy in (GEMINI, KUBESHARE):
        ratio = p99_ms[OURS] / p99_ms[policy]
        bench.bar(f"requests beside training, beside {policy}: p99", ratio, at_most=P99_OF_GEMINI, unit="of that")


def main() -> int:
    """All policies are set up throughout, each with a card of its own, so that turns are short."""
    bench = Bench.from_argv("share", libraries=["uvloop", "msgspec"])
    with ExitStack() as stack:
        places = {policy: stack.enter_context(a_place(bench, policy)) for policy in POLICIES}
        ours, free = places[OURS], places[UNMETERED]
        reach = reached(bench, free)
        if not bench.smoke:
            compared(bench, places, reach)
        for case in SMOKE if bench.smoke else MORE:
            told(bench, ours, ours.run(case, SMOKE_SECONDS if bench.smoke else lasting(case, SECONDS)), reach)
        idle_neighbours_time(bench, ours)
        alone(bench, ours, free)
        latencies(bench, places)
    disturbed = [each for place in places.values() for each in place.disturbed]
    bench.figure("runs that others disturbed", len(disturbed))
    for each in disturbed:
        sys.stderr.write(f"disturbed: {each} of the processors\n")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
