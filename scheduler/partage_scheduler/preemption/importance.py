"""Importance of pods and cost of victims: upstream's criteria, with the share of cards among them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.objects import ApiPod

_OFFSET: Final = 1 << 31
"""Added to each priority, so that one more victim never makes a sum smaller."""


class Cost(NamedTuple):
    """The cost of a set of victims; the lowest is the best."""

    violations: int
    """Number of victims that exceed a budget."""
    highest: int
    """The highest priority among them."""
    priorities: int
    """The sum of their priorities; fewer victims have a lower sum."""
    number: int
    share_milli: int
    """Share of cards' time that they hold."""
    oldest: float
    """Negated start time of the oldest of those with the highest priority: younger ones cost less."""


def started(pod: ApiPod) -> float:
    """Start time in seconds; infinite for a pod that was not started yet, which is the youngest."""
    return inf if pod.status.start_time is None else _seconds(pod.status.start_time)


def by_importance(placed_pods: Iterable[PlacedPod]) -> list[PlacedPod]:
    """The most important first: the higher priority, then the longer running."""
    return sorted(placed_pods, key=lambda placed: (-placed.pod.priority, started(placed.pod), placed.pod.uid))


def cost_of(placed_pods: Iterable[PlacedPod], violations: int) -> Cost:
    highest, oldest, priorities, number, share_milli = -_OFFSET, inf, 0, 0, 0
    for placed in placed_pods:
        priority, start = placed.pod.spec.priority or 0, started(placed.pod)
        if priority > highest:
            highest, oldest = priority, start
        elif priority == highest and start < oldest:
            oldest = start
        priorities += priority + _OFFSET
        number += 1
        for usage in placed.usages:
            share_milli += usage.share_milli
    return Cost(violations, highest, priorities, number, share_milli, -oldest)


@lru_cache(maxsize=1 << 14)
def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return inf
