"""The advertiser's figures: what its devices measured last, and how its own loop fares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from partage_base.daemon.exposition import Family, Sample
from partage_base.daemon.metrics import Metrics
from partage_plugins.vocabulary.node import Gauge

_LOOK_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class AdvertiserMetrics:
    def __init__(self, metrics: Metrics, node: str) -> None:
        self._node = node
        self._gauges: Sequence[Gauge] = ()
        self.looks: Counter[str] = Counter()
        self.patches: Counter[str] = Counter()
        self.heartbeats: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.look_seconds = metrics.histogram(
            "partage_advertiser_look_seconds", "What a look at the devices took.", buckets=_LOOK_BUCKETS
        )
        self.is_published = metrics.gauge(
            "partage_advertiser_published", "1 while the API server has the inventory that the node has."
        )
        for name, sentence, counted in (
            ("partage_advertiser_looks_total", "Looks at the devices.", self.looks),
            ("partage_advertiser_patches_total", "Writes of the annotation.", self.patches),
            ("partage_advertiser_heartbeats_total", "Renewals of the Lease.", self.heartbeats),
            ("partage_advertiser_events_total", "Events on the Node.", self.events),
        ):
            metrics.read_counter(name, sentence, counted.copy, label="outcome")
        metrics.collect(self._of_devices)

    def measured(self, gauges: Sequence[Gauge]) -> None:
        self._gauges = tuple(gauges)

    def _of_devices(self) -> Iterator[Family]:
        by_name: dict[str, list[Sample]] = {}
        for gauge in self._gauges:
            by_name.setdefault(gauge.name, []).append(Sample(gauge.value, {"node": self._node, **gauge.labels}))
        for name, samples in sorted(by_name.items()):
            yield Family(f"partage_{name}", "gauge", "As a plugin measured it.", tuple(samples))
