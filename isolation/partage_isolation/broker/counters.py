"""What the broker counts; read by metrics when somebody asks, so that counting costs an addition. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Since the broker was started."""

    packets: int = 0
    wrong: int = 0
    disarmed: int = 0
    turned_away: int = 0
    unread: int = 0
    """Connections that were closed because their client did not read."""
    parked: int = 0
    recalls: int = 0
    unanswered: int = 0
    """Hints that got no reply in time."""
    hellos: Counter[str] = field(default_factory=Counter[str])
    samples: Counter[str] = field(default_factory=Counter[str])
    sample_seconds: float = 0.0
    rows_full: int = 0
