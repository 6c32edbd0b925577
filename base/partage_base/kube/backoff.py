"""How long to wait after an error before the next try. Pure: it neither sleeps nor reads a clock.

Waits double from `first_s` to `most_s`, and each is between half of that and all of it, so that a thousand clients that
lost one server do not come back as one. What the server asks for by Retry-After is a least, and the jitter is on top.
"""

from __future__ import annotations

from collections.abc import Callable

from partage_base.kube.errors import KubeError, ServerFailed, Throttled


class Backoff:
    """One sequence of tries."""

    def __init__(self, *, first_s: float, most_s: float, random: Callable[[], float]) -> None:
        """`random` gives numbers from 0 up to 1."""
        if not 0 < first_s <= most_s:
            raise ValueError(f"0 < first_s <= most_s, not {first_s} and {most_s}")
        self._first_s, self._most_s, self._random = first_s, most_s, random
        self._next_s = first_s

    def after(self, error: KubeError | None = None) -> float:
        """Seconds until the next try; without an error where something ended too soon to be right."""
        jittered_s = self._next_s * (1 + self._random()) / 2
        self._next_s = min(2 * self._next_s, self._most_s)
        asked_s = error.retry_after_s if isinstance(error, Throttled | ServerFailed) else None
        return jittered_s + (asked_s or 0.0)

    def reset(self) -> None:
        """It works again: the next wait is the first."""
        self._next_s = self._first_s
