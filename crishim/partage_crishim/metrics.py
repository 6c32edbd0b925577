"""crishim's counters, as Prometheus wants them: read when somebody asks, so that counting costs an addition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from partage_base.daemon.exposition import Family, Sample, histogram
from partage_base.daemon.metrics import Registry
from partage_crishim.splice.counters import Counters, Seconds


class CrishimMetrics:
    """All of one crishim."""

    def __init__(self, counters: Counters, registry: Registry) -> None:
        self._counters = counters
        self.refused: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.plugins = Seconds()
        registry.register(self)

    def collect(self) -> Iterator[Family]:
        """One look at everything."""
        seen = self._counters
        yield _counter("partage_crishim_connections_total", "Connections of clients.", seen.connections)
        now = (Sample(seen.open_connections),)
        yield Family("partage_crishim_open_connections", "gauge", "Connections of clients now.", now)
        yield _counter("partage_crishim_turned_away_total", "Connections that found no runtime.", seen.turned_away)
        yield _counter("partage_crishim_broken_total", "Connections on which somebody broke the protocol.", seen.broken)
        yield _labelled("partage_crishim_calls_total", "Calls by method.", "method", seen.calls)
        yield _labelled("partage_crishim_held_total", "Holding calls by what became of them.", "outcome", seen.held)
        yield _labelled("partage_crishim_refused_total", "Refused containers by the rule.", "reason", self.refused)
        yield _labelled(
            "partage_crishim_changed_total", "Rewritten containers: granted or guarded.", "why", self.changed
        )
        carried = {"client": seen.from_client_bytes, "runtime": seen.from_upstream_bytes}
        yield _labelled("partage_crishim_carried_bytes_total", "Bytes passed on, by who sent them.", "sender", carried)
        yield _histogram("partage_crishim_judging_seconds", "What held calls waited for their verdict.", seen.judging)
        yield _histogram("partage_crishim_plugin_seconds", "What plugins took for a container.", self.plugins)


def _counter(name: str, sentence: str, value: float) -> Family:
    return Family(name, "counter", sentence, (Sample(value),))


def _labelled(name: str, sentence: str, label: str, values: Mapping[str, int]) -> Family:
    samples = tuple(Sample(count, {label: value}) for value, count in sorted(values.items()))
    return Family(name, "counter", sentence, samples)


def _histogram(name: str, sentence: str, seconds: Seconds) -> Family:
    return Family(name, "histogram", sentence, histogram(seconds.bounds, seconds.counts, seconds.total, {}))
