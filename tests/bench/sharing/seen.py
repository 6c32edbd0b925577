"""The results of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev

from bench.sharing.cases import Case


@dataclass(frozen=True)
class Seen:
    """The containers' parts of the card's time, second by second."""

    case: Case
    seconds: Sequence[tuple[float, ...]]

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(sum(parts) / len(parts) for parts in zip(*self.seconds, strict=True))

    @property
    def sigma(self) -> float:
        """The largest standard deviation of a share over the seconds."""
        return max(float(pstdev(parts)) for parts in zip(*self.seconds, strict=True))

    @property
    def total(self) -> float:
        return sum(self.shares)

    def off(self, reached: Mapping[str, float]) -> float:
        """The largest deviation of a share from its promise, relative to what its workload reaches alone."""
        each = zip(self.shares, self.case.promised, self.case.kinds, strict=True)
        return max(abs(got - promised * reached[kind]) for got, promised, kind in each)

    def shown(self) -> str:
        return "/".join(f"{share:.3f}" for share in self.shares)
