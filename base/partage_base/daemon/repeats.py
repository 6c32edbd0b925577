"""Keeps an event that others can cause at will from filling the log.

    refused = Repeats(every_s=10)
    ...
    if (silent := refused.due(pod_uid)) is not None:
        log.warning("refused", pod=pod_uid, repeats=silent)

Keys are chosen by who attacks, so memory is bounded: of too many keys the one that spoke longest ago is
forgotten, which at worst logs a line more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

MOST_KEYS: Final = 1024


class Repeats:
    """Lets an event through once in `every_s` seconds for each key."""

    def __init__(self, *, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._seen: dict[Hashable, tuple[float, int]] = {}

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._seen)

    def due(self, key: Hashable = None) -> int | None:
        """None where `key` must be silent; else how often it was silent since it last spoke."""
        now = self._clock()
        spoke, silent = self._seen.get(key, (now - self._every_s, 0))
        if now - spoke < self._every_s:
            self._seen[key] = (spoke, silent + 1)
            return None
        self._seen.pop(key, None)
        if len(self._seen) >= MOST_KEYS:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (now, 0)
        return silent
