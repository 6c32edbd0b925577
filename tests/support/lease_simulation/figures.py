"""The results of a simulation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import pstdev

from partage_isolation.timeslices.durations import SECOND
from partage_isolation.timeslices.line import Shares


@dataclass(frozen=True)
class Figures:
    """Results of one run; shares are fractions of the cards' real time, measured by the simulated cards."""

    used: tuple[tuple[float, ...], ...]
    """By container: its fraction of each second."""
    took_ns: tuple[tuple[int, ...], ...]
    """By container: the duration of each request."""
    overlapped: float
    """Fraction of the time in which work of several containers was on a card."""
    grants: int
    told: Mapping[int, Shares]
    """By container: the arbiter's own figures for its first card."""
    events: int

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(sum(seconds) / len(seconds) for seconds in self.used)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """By container: standard deviation of its share between seconds."""
        return tuple(pstdev(seconds) for seconds in self.used)

    @property
    def total(self) -> float:
        return sum(self.shares)

    def quantile_ms(self, container: int, part: float) -> float:
        """The quantile `part` of its request durations."""
        took = sorted(self.took_ns[container])
        return took[min(len(took) - 1, int(len(took) * part))] / 1e6

    def between(self, container: int, first_s: int, last_s: int) -> float:
        """Its share from second `first_s` up to, but not including, `last_s`."""
        part = self.used[container][first_s:last_s]
        return sum(part) / len(part)


def seconds_of(bins: Mapping[int, float], first: int, last: int, bins_each: int) -> tuple[float, ...]:
    """Bins summed to fractions of seconds."""
    return tuple(
        sum(bins.get(number, 0.0) for number in range(second, second + bins_each)) / SECOND
        for second in range(first, last - bins_each + 1, bins_each)
    )
