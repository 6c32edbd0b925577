"""A daemon's metrics, in a registry of its own and with the names that Prometheus asks for.

The whole name is written where the metric is made, so that it can be found by searching for it; a name that breaks the
rules raises ValueError at once. Rules: ``partage_`` first, lower case, counters end in ``_total``, base units at the
end (``_seconds``, ``_bytes``, ``_ratio`` from 0 to 1) and no other unit. Labels that objects share are called ``node``,
``device_uuid``, ``model``, ``namespace``, ``pod``, ``container``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol, overload

from partage_base.daemon.exposition import Family, Kind, page
from partage_base.daemon.measures import Counter, Gauge, Histogram, Labelled
from partage_base.version import VERSION

Measures = Counter | Gauge | Histogram | Labelled[Any]

_NAME: Final = re.compile(r"partage(_[a-z0-9]+)+")
_LABEL: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_BASE_UNITS: Final = ("seconds", "bytes", "ratio")
_OTHER_UNITS: Final = frozenset(
    ("ns", "us", "ms", "milliseconds", "minutes", "hours", "kb", "mb", "gb", "kib", "mib", "gib", "percent", "milli")
)


class Collector(Protocol):
    """Somebody who counts by himself and is asked when a page is made."""

    def collect(self) -> Iterable[Family]:
        """Everything, now."""
        ...


class Registry:
    """What is on a page: our own metrics, and everybody who counts by himself."""

    def __init__(self) -> None:
        self._metrics: dict[str, tuple[Kind, str, Measures]] = {}
        self._collectors: list[Collector] = []

    def add(self, name: str, kind: Kind, sentence: str, measure: Measures) -> None:
        """A metric, under a name that nobody else has."""
        if name in self._metrics:
            raise ValueError(f"metric {name}: there is one of that name")
        self._metrics[name] = (kind, sentence, measure)

    def register(self, collector: Collector) -> None:
        """Asked from now on."""
        self._collectors.append(collector)

    def collect(self) -> Iterator[Family]:
        """One look at everything."""
        for name, (kind, sentence, measure) in self._metrics.items():
            yield Family(name, kind, sentence, measure.samples({}))
        for collector in self._collectors:
            yield from collector.collect()


class Metrics:
    """Makes a daemon's metrics and writes them out."""

    def __init__(self, daemon: str) -> None:
        self.registry = Registry()
        build = self.gauge("partage_build_info", "The build that runs; always 1.", labels=("version", "daemon"))
        build.labels(version=VERSION, daemon=daemon).set(1)

    @overload
    def counter(self, name: str, sentence: str) -> Counter: ...
    @overload
    def counter(self, name: str, sentence: str, *, labels: Sequence[str]) -> Labelled[Counter]: ...
    def counter(self, name: str, sentence: str, *, labels: Sequence[str] = ()) -> Counter | Labelled[Counter]:
        """What only grows; ends in ``_total``."""
        measure = Labelled(labels, Counter) if labels else Counter()
        self.registry.add(_checked(name, labels, total=True), "counter", sentence, measure)
        return measure

    @overload
    def gauge(self, name: str, sentence: str) -> Gauge: ...
    @overload
    def gauge(self, name: str, sentence: str, *, labels: Sequence[str]) -> Labelled[Gauge]: ...
    def gauge(self, name: str, sentence: str, *, labels: Sequence[str] = ()) -> Gauge | Labelled[Gauge]:
        """What goes up and down."""
        measure = Labelled(labels, Gauge) if labels else Gauge()
        self.registry.add(_checked(name, labels), "gauge", sentence, measure)
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
        """How a size or a time is distributed; its unit is at the end."""
        if not name.endswith(_BASE_UNITS):
            raise ValueError(f"metric {name}: a histogram ends in _{', _'.join(_BASE_UNITS)}")
        measure = Labelled(labels, partial(Histogram, buckets)) if labels else Histogram(buckets)
        self.registry.add(_checked(name, labels), "histogram", sentence, measure)
        return measure

    def page(self) -> bytes:
        """All of them as text, for a scraper."""
        return page(self.registry.collect())


def _checked(name: str, labels: Sequence[str], *, total: bool = False) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"metric {name}: a name is partage_ and lower-case words")
    if name.endswith("_total") is not total:
        raise ValueError(f"metric {name}: counters, and they alone, end in _total")
    words = name.removesuffix("_total").split("_")
    if other := _OTHER_UNITS.intersection(words):
        raise ValueError(f"metric {name}: {min(other)} is no base unit; use _{', _'.join(_BASE_UNITS)}")
    if misplaced := set(_BASE_UNITS).intersection(words[:-1]):
        raise ValueError(f"metric {name}: the unit {min(misplaced)} belongs at the end")
    if bad := [label for label in labels if not _LABEL.fullmatch(label)]:
        raise ValueError(f"metric {name}: label {bad[0]} is not lower-case words")
    return name
