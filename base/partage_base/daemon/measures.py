"""What a daemon counts with: numbers, distributions, and one of either for each set of labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from partage_base.daemon.exposition import Sample, histogram


class Gauge:
    """One number that goes up and down."""

    def __init__(self) -> None:
        self._value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Adds."""
        self._value += amount

    def set(self, value: float) -> None:
        """Replaces."""
        self._value = value

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        """For the page."""
        return (Sample(self._value, labels),)


class Counter:
    """One number that only grows."""

    def __init__(self) -> None:
        self._value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Adds."""
        if amount < 0:
            raise ValueError(f"a counter only grows; {amount} was to be added")
        self._value += amount

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        """For the page."""
        return (Sample(self._value, labels),)


class Histogram:
    """How often a value fell into which bucket."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(sorted(bounds))
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        """For the page."""
        return histogram(self._bounds, self._counts, self._total, labels)


M = TypeVar("M", Gauge, Counter, Histogram)


class Labelled(Generic[M]):
    """One measure for each set of labels."""

    def __init__(self, names: Sequence[str], make: Callable[[], M]) -> None:
        self._names = tuple(names)
        self._make: Callable[[], M] = make
        self._measures: dict[tuple[str, ...], M] = {}

    def labels(self, **values: str) -> M:
        """The measure of these labels, made at the first time."""
        if values.keys() != set(self._names):
            raise ValueError(f"labels {', '.join(values) or 'none'} were given; allowed: {', '.join(self._names)}")
        key = tuple(values[name] for name in self._names)
        if key not in self._measures:
            self._measures[key] = self._make()
        return self._measures[key]

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        """For the page: of all, in the order in which they were first named."""
        return tuple(sample for each in self._each(labels) for sample in each)

    def _each(self, labels: Mapping[str, str]) -> Iterator[tuple[Sample, ...]]:
        for values, measure in self._measures.items():
            yield measure.samples({**labels, **dict(zip(self._names, values, strict=True))})
