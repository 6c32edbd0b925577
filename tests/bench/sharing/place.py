"""A node under one policy, which repeats cases until none was disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from bench.harness import Bench
from bench.measuring.quiet import MOST_FOREIGN, quietly
from bench.sharing.cases import Case
from bench.sharing.seen import Seen
from partage_isolation.library.objects import built
from support.isolated import Isolated, isolated
from support.sharing import Running, Sharer, sharing, watched

OURS: Final = "ours"
GEMINI: Final = "Gemini's"
KUBESHARE: Final = "Gemini's in KubeShare"
UNMETERED: Final = "no metering"
POLICIES: Final[Mapping[str, Mapping[str, str]]] = {
    OURS: {"policy": "virtual-time"},
    GEMINI: {"policy": "gemini"},
    KUBESHARE: {"policy": "gemini", "gemini_quota_ms": "300", "gemini_least_ms": "20"},
    UNMETERED: {"policy": "free-run"},
}
SETTLES_S: Final = 1.5
SMOKE_S: Final = 0.2
"""Duration of a smoke run, and of the settling time before it."""
AGAIN: Final = 2
"""The limit of repeats of a disturbed run,"""
REPEATS: Final = 2
"""and of all runs under one policy together: so the whole takes a quarter of an hour at most."""
T = TypeVar("T")


class Place:
    def __init__(self, bench: Bench, policy: str, isolation: Isolated) -> None:
        self._bench, self.policy, self._isolation = bench, policy, isolation
        self.disturbed: list[str] = []
        """Measurements for which the machine was never quiet."""
        self._repeats = 0 if bench.smoke else REPEATS
        self._settles_s, self._step_s = (SMOKE_S, SMOKE_S) if bench.smoke else (SETTLES_S, 1.0)

    def run(self, case: Case, seconds: int, look: Callable[[Sequence[Running]], None] = lambda _: None) -> Seen:
        """`look` is called with the running programs before the measurement."""
        return self._quietly(case.name, lambda: Seen(case, self._seconds(case.sharers, seconds, look)))

    def latency(self, *sharers: Sharer) -> tuple[float, float]:
        """The median and the 99th percentile of the first one's requests, in ms, until all are done."""
        return self._quietly("inference", lambda: self._requests(sharers))

    def _requests(self, sharers: Sequence[Sharer]) -> tuple[float, float]:
        others = sharers[1:]
        with sharing(self._isolation, *others), sharing(self._isolation, sharers[0]) as running:
            time.sleep(self._settles_s)
            told = running[0].lines()[0]
            self._look(running)
        return float(told["p50_ms"]), float(told["p99_ms"])

    def _seconds(
        self, sharers: Sequence[Sharer], seconds: int, look: Callable[[Sequence[Running]], None]
    ) -> list[tuple[float, ...]]:
        with sharing(self._isolation, *sharers) as running:
            look(running)
            time.sleep(self._settles_s)
            seen = watched(self._isolation, running, seconds, self._step_s)
            self._look(running)
        return seen

    def _look(self, running: Sequence[Running]) -> None:
        """A figure of unmetered programs would not be ours."""
        for each in running:
            told = each.time
            name = f"{self.policy}, {each.sharer.name}"
            if self.policy == UNMETERED:
                self._bench.engaged(f"{name}: no lease was given", told is None or not told.timeslices)
            else:
                self._bench.engaged(f"{name}: leases were given", told is not None and told.timeslices)

    def _quietly(self, name: str, measure: Callable[[], T]) -> T:
        daemons = [self._isolation.node.pid, self._isolation.broker.pid]
        found = quietly(measure, daemons=daemons, judged=False)
        for _ in range(min(AGAIN, self._repeats)):
            if found.foreign > MOST_FOREIGN:
                self._repeats -= 1
                found = min(found, quietly(measure, daemons=daemons, judged=False), key=lambda each: each.foreign)
        if found.foreign > MOST_FOREIGN:
            self.disturbed.append(f"{self.policy}, {name}: {found.foreign:.0%}")
        return found.told


@contextmanager
def a_place(bench: Bench, policy: str) -> Generator[Place]:
    with isolated(cards=("h100",), library=built(), settings=POLICIES[policy]) as isolation:
        yield Place(bench, policy, isolation)
