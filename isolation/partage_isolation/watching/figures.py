"""The audit's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from partage_base.daemon.metrics import Metrics
from partage_isolation.watching.findings import Finding

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class Figures:
    """Of one broker."""

    def __init__(self, metrics: Metrics) -> None:
        self._found = metrics.counter("partage_broker_findings_total", "What audits found wrong.", labels=("kind",))
        self._standing = metrics.gauge(
            "partage_broker_findings_standing", "What is wrong as of the last audit.", labels=("kind",)
        )
        self._stops = metrics.counter(
            "partage_broker_stops_total", "Containers stopped because limits were not in force.", labels=("outcome",)
        )
        self.blind = metrics.gauge(
            "partage_broker_blind_cards",
            "Cards that did not say what processes hold when the last audit asked: no answer, or blind.",
        )
        self.seconds = metrics.histogram("partage_broker_audit_seconds", "What an audit took.", buckets=_BUCKETS)
        self._kinds: set[str] = set()

    def found(self, new: Iterable[Finding], standing: Iterable[Finding]) -> None:
        """After an audit."""
        for finding in new:
            self._found.labels(kind=finding.kind).inc()
        now = Counter(finding.kind for finding in standing)
        self._kinds.update(now)
        for kind in self._kinds:
            self._standing.labels(kind=kind).set(now[kind])

    def stopped(self, outcome: str) -> None:
        """`done` or `failed`."""
        self._stops.labels(outcome=outcome).inc()
