"""How late a sleeping thread is woken, printed with failures: the broker waits for others 50 to 100 ms."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

_NAP_S: Final = 0.005


class Delays:
    def __init__(self) -> None:
        self._longest_s, self._woken_at = 0.0, time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="delays", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def longest_s(self) -> float:
        """The longest delay since the last `renew`, including one that is in progress."""
        return max(self._longest_s, time.monotonic() - self._woken_at - _NAP_S)

    def renew(self) -> None:
        self._longest_s = 0.0

    def _watch(self) -> None:
        self._woken_at = time.monotonic()
        while not self._ended.wait(_NAP_S):
            now = time.monotonic()
            self._longest_s = max(self._longest_s, now - self._woken_at - _NAP_S)
            self._woken_at = now
