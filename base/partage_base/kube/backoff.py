"""Exponential backoff with jitter, plus the delay that the server asked for."""

from __future__ import annotations

from collections.abc import Callable
from random import random

from partage_base.kube.errors import KubeError, ServerFailed, Throttled


class Backoff:
    def __init__(self, *, first_s: float, most_s: float, random: Callable[[], float] = random) -> None:
        """`random` returns numbers from 0 up to 1."""
        if not 0 < first_s <= most_s:
            raise ValueError(f"0 < first_s <= most_s, not {first_s} and {most_s}")
        self._first_s, self._most_s, self._random = first_s, most_s, random
        self._next_s = first_s

    def after(self, error: KubeError | None = None) -> float:
        """Seconds until the next try; without an error if something merely ended too soon."""
        jittered_s = self._next_s * (1 + self._random()) / 2
        self._next_s = min(2 * self._next_s, self._most_s)
        asked_s = error.retry_after_s if isinstance(error, Throttled | ServerFailed) else None
        return jittered_s + (asked_s or 0.0)

    def reset(self) -> None:
        """After a success: the next wait is the first again."""
        self._next_s = self._first_s
