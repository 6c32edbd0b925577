"""A daemon's metrics, named by Prometheus' conventions.

What is counted as it happens is a `Counter`, `Gauge` or `Histogram`; what is known elsewhere is read when the page is
rendered (`read_counter`, `read_gauge`, `collect`). The full name is written where the metric is made, so that a search
finds it; a name that breaks the rules raises ValueError at once. Rules: ``partage_`` first, lower case, counters end in
``_total``, base units at the end (``_seconds``, ``_bytes``, ``_ratio`` from 0 to 1) and no other unit. Every label is
in `LABELS` with a bound on its values, so that nothing users choose can fill a page.
"""

from __future__ import annotations

import collections
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar, overload

from partage_base.daemon.exposition import Family, Kind, Sample, histogram, page
from partage_base.version import VERSION

_NAME: Final = re.compile(r"partage(_[a-z0-9]+)+")
_BASE_UNITS: Final = ("seconds", "bytes", "ratio")
_OTHER_UNITS: Final = frozenset(
    ("ns", "us", "ms", "milliseconds", "minutes", "hours", "kb", "mb", "gb", "kib", "mib", "gib", "percent", "milli")
)

LABELS: Final[Mapping[str, str]] = {
    "container": "with `namespace` and `pod`: 1,024 on a broker's page",
    "daemon": "one",
    "device_uuid": "512 on a node, on the scheduler's page on each node",
    "error": "statuses of HTTP, and classes of errors",
    "health": "3",
    "hook": "hooks of the contract with plugins",
    "key": "64 on a node; the scheduler's page has one",
    "kind": "kinds of findings, or of objects that are followed: below 20 each",
    "method": "64, and `other`",
    "model": "models of cards of a node",
    "namespace": "at most as many as `pod`",
    "node": "one, on the scheduler's page every node",
    "outcome": "what can come of it: below 10",
    "place": "6",
    "plugin": "plugins that are installed",
    "pod": "on the scheduler's page 50,000, once for each of their cards; on a broker's as `container`",
    "pool": "3",
    "question": "4",
    "reason": "of nodes 8; of pods 128, and `other`; of crishim's refusals its rules",
    "result": "what can come of it: below 10",
    "sender": "2",
    "stage": "3",
    "state": "4",
    "version": "one",
    "why": "2",
    "window": "3",
}
"""Each label, and how many values it may have on one page. `fair_part` chooses among more pods and containers."""


class Gauge:
    """A number that goes up and down."""

    def __init__(self) -> None:
        self._value = 0.0

    def inc(self, amount: float = 1) -> None:
        self._value += amount

    def set(self, value: float) -> None:
        self._value = value

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        return (Sample(self._value, labels),)


class Counter:
    """A number that only grows."""

    def __init__(self) -> None:
        self._value = 0.0

    def inc(self, amount: float = 1) -> None:
        if amount < 0:
            raise ValueError(f"a counter only grows; {amount} was to be added")
        self._value += amount

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        return (Sample(self._value, labels),)


class Counts(collections.Counter[str]):
    """A count for each value of a label; its owner adds to it."""

    def add(self, value: str) -> None:
        self[value] += 1


class Histogram:
    """Counts of observed values by bucket."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(sorted(bounds))
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        return histogram(self._bounds, self._counts, self._total, labels)


M = TypeVar("M", Gauge, Counter, Histogram)


class Labelled(Generic[M]):
    """One measure for each set of label values."""

    def __init__(self, names: Sequence[str], make: Callable[[], M]) -> None:
        self._names = tuple(names)
        self._make: Callable[[], M] = make
        self._measures: dict[tuple[str, ...], M] = {}

    def labels(self, **values: str) -> M:
        """The measure of these label values, created on first use."""
        if values.keys() != set(self._names):
            raise ValueError(f"labels {', '.join(values) or 'none'} were given; allowed: {', '.join(self._names)}")
        key = tuple(values[name] for name in self._names)
        if key not in self._measures:
            self._measures[key] = self._make()
        return self._measures[key]

    def samples(self, labels: Mapping[str, str]) -> tuple[Sample, ...]:
        return tuple(
            sample
            for values, measure in self._measures.items()
            for sample in measure.samples({**labels, **dict(zip(self._names, values, strict=True))})
        )


Measure = Counter | Gauge | Histogram | Labelled[Any]
Read = Callable[[], float] | Callable[[], Mapping[str, float]]


class Metrics:
    """All metrics of a daemon's page."""

    def __init__(self, daemon: str) -> None:
        self._reads: dict[str, Callable[[], Iterable[Family]]] = {}
        build = self.gauge("partage_build_info", "The build that runs; always 1.", labels=("version", "daemon"))
        build.labels(version=VERSION, daemon=daemon).set(1)

    @overload
    def counter(self, name: str, sentence: str) -> Counter: ...
    @overload
    def counter(self, name: str, sentence: str, *, labels: Sequence[str]) -> Labelled[Counter]: ...
    def counter(self, name: str, sentence: str, *, labels: Sequence[str] = ()) -> Counter | Labelled[Counter]:
        """A metric that only grows; its name ends in ``_total``."""
        measure = Labelled(labels, Counter) if labels else Counter()
        self.add("counter", name, sentence, measure, labels=labels)
        return measure

    @overload
    def gauge(self, name: str, sentence: str) -> Gauge: ...
    @overload
    def gauge(self, name: str, sentence: str, *, labels: Sequence[str]) -> Labelled[Gauge]: ...
    def gauge(self, name: str, sentence: str, *, labels: Sequence[str] = ()) -> Gauge | Labelled[Gauge]:
        """A metric that goes up and down."""
        measure = Labelled(labels, Gauge) if labels else Gauge()
        self.add("gauge", name, sentence, measure, labels=labels)
        return measure

    @overload
    def histogram(self, name: str, sentence: str, *, buckets: Sequence[float]) -> Histogram: ...
    @overload
    def histogram(
        self, name: str, sentence: str, *, buckets: Sequence[float], labels: Sequence[str]
    ) -> Labelled[Histogram]: ...
    def histogram(
        self, name: str, sentence: str, *, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram | Labelled[Histogram]:
        """The distribution of a size or a duration; its name ends in its unit."""
        measure = Labelled(labels, partial(Histogram, buckets)) if labels else Histogram(buckets)
        self.add("histogram", name, sentence, measure, labels=labels)
        return measure

    def add(self, kind: Kind, name: str, sentence: str, measure: Measure, *, labels: Sequence[str] = ()) -> None:
        """Adds a measure that was made elsewhere; its name must be unique."""
        self._add(kind, name, labels, lambda: (Family(name, kind, sentence, measure.samples({})),))

    def counts(self, name: str, sentence: str, *, label: str) -> Counts:
        """A counter by the values of one label that are not known in advance."""
        counts = Counts()
        self.read_counter(name, sentence, counts.copy, label=label)
        return counts

    def read_counter(self, name: str, sentence: str, read: Read, *, label: str = "") -> None:
        """A counter whose value `read` returns; with `label`, one for each value of the label."""
        self._read("counter", name, sentence, read, label)

    def read_gauge(self, name: str, sentence: str, read: Read, *, label: str = "") -> None:
        """A gauge whose value `read` returns; with `label`, one for each value of the label."""
        self._read("gauge", name, sentence, read, label)

    def collect(self, read: Callable[[], Iterable[Family]]) -> None:
        """Adds families that are read together, or whose names are known only when the page is rendered."""
        self._reads[f"collected {len(self._reads)}"] = read

    def page(self) -> bytes:
        """The page in the text format, for a scraper."""
        return page(self.families())

    def families(self) -> Iterator[Family]:
        """The current values of all metrics."""
        for read in self._reads.values():
            yield from read()

    def _read(self, kind: Kind, name: str, sentence: str, read: Read, label: str) -> None:
        def families() -> tuple[Family]:
            value = read()
            if isinstance(value, Mapping):
                samples = tuple(Sample(each, {label: key}) for key, each in sorted(value.items()))
            else:
                samples = (Sample(value),)
            return (Family(name, kind, sentence, samples),)

        self._add(kind, name, (label,) if label else (), families)

    def _add(self, kind: Kind, name: str, labels: Sequence[str], read: Callable[[], Iterable[Family]]) -> None:
        if name in self._reads:
            raise ValueError(f"metric {name}: there is one of that name")
        _check(kind, name, labels)
        self._reads[name] = read


def _check(kind: Kind, name: str, labels: Sequence[str]) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"metric {name}: a name is partage_ and lower-case words")
    if name.endswith("_total") is not (kind == "counter"):
        raise ValueError(f"metric {name}: counters, and they alone, end in _total")
    if kind == "histogram" and not name.endswith(_BASE_UNITS):
        raise ValueError(f"metric {name}: a histogram ends in _{', _'.join(_BASE_UNITS)}")
    words = name.removesuffix("_total").split("_")
    if other := _OTHER_UNITS.intersection(words):
        raise ValueError(f"metric {name}: {min(other)} is no base unit; use _{', _'.join(_BASE_UNITS)}")
    if misplaced := set(_BASE_UNITS).intersection(words[:-1]):
        raise ValueError(f"metric {name}: the unit {min(misplaced)} belongs at the end")
    if bad := [label for label in labels if label not in LABELS]:
        raise ValueError(f"metric {name}: label {bad[0]} has no bound; say in LABELS how many values it may have")
