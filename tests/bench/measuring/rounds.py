"""Times calls in rounds, and computes statistics of rounds. Pure except for the clock, which is a parameter.

A round makes many calls between two readings of the clock. A comparison runs both sides in every round, in alternating
order, and keeps the difference of each round: drift (heat, frequency, a neighbour) affects both.
"""

import gc
import statistics
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

Clock = Callable[[], int]

Stretch = Callable[[int], int]
"""Calls the measured function `count` times; returns the nanoseconds that took."""


@dataclass(frozen=True)
class Plan:
    rounds: int
    round_ns: int
    """A round is at least this long, so that the clock's own cost is negligible."""


FULL = Plan(rounds=41, round_ns=5_000_000)
SMOKE = Plan(rounds=2, round_ns=0)


@dataclass(frozen=True)
class Spread:
    """The median of many values, and the quartiles around it."""

    median_ns: float
    q1_ns: float
    q3_ns: float

    @property
    def median_us(self) -> float:
        return self.median_ns / 1_000


@dataclass(frozen=True)
class Timing(Spread):
    """The time of one call, from rounds of several calls each."""

    rounds: int
    per_round: int


@dataclass(frozen=True)
class Difference(Spread):
    """The candidate's time beyond the reference's per call, from the differences within each round."""

    reference: Timing
    candidate: Timing

    @property
    def ratio(self) -> float:
        return self.candidate.median_ns / self.reference.median_ns


class Stolen(NamedTuple, Generic[T]):
    """The result of a round, and the part of processor time that other machines took meanwhile."""

    part: float
    found: T


def quiet_rounds(one: Callable[[], Stolen[T]], wanted: int, *, quiet: float, most: int) -> list[Stolen[T]]:
    """The wanted number of rounds: a disturbed one is repeated, and after `most` in all the least disturbed count."""
    rounds: list[Stolen[T]] = []
    while sum(each.part <= quiet for each in rounds) < wanted and len(rounds) < most:
        rounds.append(one())
    return sorted(rounds, key=lambda each: each.part)[:wanted]


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile; all three equal a single value."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return q1, median, q3


def as_timing(calls_ns: Sequence[float], per_round: int = 1) -> Timing:
    """The timing computed from these times of one call."""
    q1, median, q3 = quartiles(calls_ns)
    return Timing(median_ns=median, q1_ns=q1, q3_ns=q3, rounds=len(calls_ns), per_round=per_round)


def as_difference(reference_ns: Sequence[float], candidate_ns: Sequence[float], per_round: int = 1) -> Difference:
    """The difference computed from these paired times of one call."""
    pairs = zip(reference_ns, candidate_ns, strict=True)
    q1, median, q3 = quartiles([candidate - reference for reference, candidate in pairs])
    return Difference(
        median_ns=median,
        q1_ns=q1,
        q3_ns=q3,
        reference=as_timing(reference_ns, per_round),
        candidate=as_timing(candidate_ns, per_round),
    )


def stretch_of(call: Callable[[], object], clock: Clock) -> Stretch:
    def stretch(count: int) -> int:
        started = clock()
        for _ in range(count):
            call()
        return clock() - started

    return stretch


def warmed_up(stretch: Stretch, plan: Plan) -> int:
    """Calls until a round is long enough; returns the number of calls."""
    count = 1
    while stretch(count) < plan.round_ns:
        count *= 2
    return count


def time_rounds(stretch: Stretch, plan: Plan) -> Timing:
    count = warmed_up(stretch, plan)
    with _collector_paused():
        return as_timing([stretch(count) / count for _ in range(plan.rounds)], count)


def compare_rounds(reference: Stretch, candidate: Stretch, plan: Plan) -> Difference:
    count = max(warmed_up(reference, plan), warmed_up(candidate, plan))
    times: dict[Stretch, list[float]] = {reference: [], candidate: []}
    with _collector_paused():
        for number in range(plan.rounds):
            for stretch in (reference, candidate) if number % 2 == 0 else (candidate, reference):
                times[stretch].append(stretch(count) / count)
    return as_difference(times[reference], times[candidate], count)


@contextmanager
def _collector_paused() -> Generator[None]:
    """A collection in one round and none in the next would look like a difference."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
