"""How often one connection, and one container by all of its connections, may speak. Pure."""

from __future__ import annotations

from typing import Final

RATE: Final = 2000
"""Messages a second of a connection; a program that allocates as fast as a card lets it stays far below."""
BURST: Final = 200
CONTAINER_RATE: Final = 8000
"""Of all connections of a container: a tenth of what the broker can answer, however many it opens."""
CONTAINER_BURST: Final = 1600
HELLO_COSTS: Final = 10
"""The broker looks at a process for each."""
LEASE_COSTS: Final = 4
"""Whatever is said of leases, whose turn it is is looked at anew."""
NEWCOMERS_RATE: Final = 500
"""Connections a second."""
NEWCOMERS_BURST: Final = 600
REST_S: Final = 0.010
"""How long a connection that spent all is not listened to."""


class Bucket:
    """Fills all the time, up to `burst`."""

    __slots__ = ("_at_s", "_burst", "_left", "_rate")

    def __init__(self, now_s: float, *, rate: float = RATE, burst: float = BURST) -> None:
        self._left, self._at_s, self._rate, self._burst = burst, now_s, rate, burst

    def take(self, now_s: float, cost: int = 1) -> bool:
        """So much more; False where whoever speaks should now rest."""
        left, burst = self._left + (now_s - self._at_s) * self._rate, self._burst
        left = (left if left < burst else burst) - cost  # noqa: FURB136  `min` and `max` take longer, at each packet
        self._left, self._at_s = (left if left > -burst else -burst), now_s  # noqa: FURB136
        return left > 0

    def spend(self, cost: int) -> None:
        """What was taken just now costs more by that."""
        self._left = max(-self._burst, self._left - cost)

    def empty_for_s(self, now_s: float) -> float:
        """How long there is nothing to be had; 0 where there is something."""
        return max(0.0, -self._left / self._rate - (now_s - self._at_s))
