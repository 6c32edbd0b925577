"""crishim's metrics, read from plain counters when a page is made: so counting costs an addition."""

from __future__ import annotations

from collections import Counter

from partage_base.daemon.metrics import Histogram, Metrics
from partage_crishim.splice.counters import SECONDS, Counters


class CrishimMetrics:
    """All of one crishim."""

    def __init__(self, seen: Counters, metrics: Metrics) -> None:
        self.refused: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.plugins = Histogram(SECONDS)
        count = metrics.read_counter
        count("partage_crishim_connections_total", "Connections of clients.", lambda: seen.connections)
        metrics.read_gauge(
            "partage_crishim_open_connections", "Connections of clients now.", lambda: seen.open_connections
        )
        count("partage_crishim_turned_away_total", "Connections that found no runtime.", lambda: seen.turned_away)
        count("partage_crishim_broken_total", "Connections on which a peer broke the protocol.", lambda: seen.broken)
        count("partage_crishim_calls_total", "Calls by method.", lambda: seen.calls, label="method")
        count("partage_crishim_held_total", "Held calls by outcome.", lambda: seen.held, label="outcome")
        count("partage_crishim_refused_total", "Refused containers by rule.", lambda: self.refused, label="reason")
        count(
            "partage_crishim_changed_total",
            "Rewritten containers: granted or guarded.",
            lambda: self.changed,
            label="why",
        )
        count(
            "partage_crishim_carried_bytes_total",
            "Bytes passed on, by who sent them.",
            lambda: {"client": seen.from_client_bytes, "runtime": seen.from_upstream_bytes},
            label="sender",
        )
        waits = "What held calls waited for their verdict."
        metrics.add("histogram", "partage_crishim_judging_seconds", waits, seen.judging)
        took = "What plugins took for a container."
        metrics.add("histogram", "partage_crishim_plugin_seconds", took, self.plugins)
