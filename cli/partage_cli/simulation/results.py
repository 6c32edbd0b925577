"""Results of replays: the curve of each, and for each policy the mean over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from msgspec import Struct


class Point(Struct, frozen=True, kw_only=True):
    """The fleet's state at one amount of arrivals; all are percentages of its cards' capacity."""

    arrived: int
    allocated: float
    fragments: float
    """Idle share that typical pods can't use."""


class ReplayResult(Struct, frozen=True, kw_only=True):
    policy: str
    seed: int
    points: tuple[Point, ...]
    pods: int
    unplaced: int
    idle_cards: int
    """Entirely idle at the end."""

    def at(self, arrived: int) -> Point | None:
        """The state at that point; None if the replay ended before."""
        return next((point for point in self.points if point.arrived == arrived), None)


class Mean(Struct, frozen=True):
    """Mean over seeds, and the spread between them (population standard deviation)."""

    mean: float
    spread: float


class MeanPoint(Struct, frozen=True, kw_only=True):
    """A point of the mean curve."""

    arrived: int
    allocated: Mean
    fragments: Mean


class Summary(Struct, frozen=True, kw_only=True):
    """All replays of one policy."""

    policy: str
    seeds: tuple[int, ...]
    points: tuple[MeanPoint, ...]
    pods: float
    unplaced: float
    idle_cards: float

    def at(self, arrived: int) -> MeanPoint | None:
        """The mean at that point; None if the replays ended before."""
        return next((point for point in self.points if point.arrived == arrived), None)


def summarised(runs: Sequence[ReplayResult]) -> list[Summary]:
    """A summary for each policy, in order of first appearance."""
    return [
        _summary(policy, [run for run in runs if run.policy == policy])
        for policy in dict.fromkeys(run.policy for run in runs)
    ]


def _summary(policy: str, runs: Sequence[ReplayResult]) -> Summary:
    seeds = sorted(runs, key=lambda run: run.seed)
    return Summary(
        policy=policy,
        seeds=tuple(run.seed for run in seeds),
        points=tuple(_mean_point(points) for points in zip(*(run.points for run in seeds), strict=True)),
        pods=fmean(run.pods for run in seeds),
        unplaced=fmean(run.unplaced for run in seeds),
        idle_cards=fmean(run.idle_cards for run in seeds),
    )


def _mean_point(points: Sequence[Point]) -> MeanPoint:
    return MeanPoint(
        arrived=points[0].arrived,
        allocated=_mean([point.allocated for point in points]),
        fragments=_mean([point.fragments for point in points]),
    )


def _mean(numbers: Sequence[float]) -> Mean:
    return Mean(fmean(numbers), pstdev(numbers))
