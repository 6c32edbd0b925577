"""The proxy's counters, as plain numbers for the metrics page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from partage_base.daemon.metrics import Histogram

OTHER: Final = "other"
_MAX_METHODS: Final = 64
"""Method names come from clients. The whole CRI has fewer."""
SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
"""The bounds of both histograms."""


@dataclass
class Counters:
    """Counts of one proxy since its start."""

    connections: int = 0
    open_connections: int = 0
    turned_away: int = 0
    """Connections accepted while the runtime did not answer."""
    broken: int = 0
    """Connections that ended because a peer broke the protocol."""
    from_client_bytes: int = 0
    from_upstream_bytes: int = 0
    calls: Counter[str] = field(default_factory=Counter[str])
    """By method; methods beyond `_MAX_METHODS` are counted as `other`."""
    held: Counter[str] = field(default_factory=Counter[str])
    """Intercepted calls by outcome: passed, rewritten, refused, rejected, dropped."""
    judging: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """From the last byte of an intercepted call to its decision."""

    def call(self, method: str) -> None:
        known = method in self.calls or len(self.calls) < _MAX_METHODS
        self.calls[method if known else OTHER] += 1
