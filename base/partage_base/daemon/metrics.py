"""A daemon's metrics, in a registry of its own and with the names that Prometheus asks for.

The whole name is written where the metric is made, so that it can be found by searching for it; a name that breaks the
rules raises ValueError at once. Rules: ``partage_`` first, lower case, counters end in ``_total``, base units at the
end (``_seconds``, ``_bytes``, ``_ratio`` from 0 to 1) and no other unit. Labels that objects share are called ``node``,
``device_uuid``, ``model``, ``namespace``, ``pod``, ``container``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final, cast

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST

_NAME: Final = re.compile(r"partage(_[a-z0-9]+)+")
_LABEL: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_BASE_UNITS: Final = ("seconds", "bytes", "ratio")
_OTHER_UNITS: Final = frozenset(
    ("ns", "us", "ms", "milliseconds", "minutes", "hours", "kb", "mb", "gb", "kib", "mib", "gib", "percent", "milli")
)


# They double the series, and nobody asks for them. The switch is the library's and holds for the process.
_without_created_series = cast("Callable[[], None]", prometheus_client.disable_created_metrics)


def build_version() -> str:
    """The version that is installed."""
    try:
        return version("partage")
    except PackageNotFoundError:  # run from a checkout
        return "unknown"


class Metrics:
    """Makes a daemon's metrics and writes them out."""

    def __init__(self, daemon: str) -> None:
        _without_created_series()
        self.registry = CollectorRegistry()
        build = self.gauge("partage_build_info", "The build that runs; always 1.", labels=("version", "daemon"))
        build.labels(version=build_version(), daemon=daemon).set(1)

    def counter(self, name: str, sentence: str, *, labels: Sequence[str] = ()) -> Counter:
        """What only grows; ends in ``_total``."""
        return Counter(_checked(name, labels, total=True), sentence, labels, registry=self.registry)

    def gauge(self, name: str, sentence: str, *, labels: Sequence[str] = ()) -> Gauge:
        """What goes up and down."""
        return Gauge(_checked(name, labels), sentence, labels, registry=self.registry)

    def histogram(self, name: str, sentence: str, *, buckets: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        """How a size or a time is distributed; its unit is at the end."""
        if not name.endswith(_BASE_UNITS):
            raise ValueError(f"metric {name}: a histogram ends in _{', _'.join(_BASE_UNITS)}")
        return Histogram(_checked(name, labels), sentence, labels, registry=self.registry, buckets=buckets)

    def page(self) -> bytes:
        """All of them as text, for a scraper."""
        return prometheus_client.generate_latest(self.registry)


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
