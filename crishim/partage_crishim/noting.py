"""Notes that kubelet speaks through us, so that a node whose kubelet was pointed elsewhere takes no shared pods.

kubelet asks for the runtime's status every five seconds. The note is the time of a file below /run, at which the
advertiser looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_crishim.verdicts import STATUS

_AT_MOST_EVERY_S: Final = 1.0


class KubeletSign:
    """The file; `note` is called with the method of every call."""

    def __init__(self, path: Path, *, failed: Callable[[OSError], None]) -> None:
        self._path = path
        self._failed = failed
        self._noted_s = float("-inf")

    def note(self, method: str) -> None:
        """Takes note of a call, if it is kubelet's question for the runtime's status."""
        if method != STATUS:
            return
        now = time.monotonic()
        if now - self._noted_s < _AT_MOST_EVERY_S:
            return
        self._noted_s = now
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o644)
        except OSError as error:
            self._failed(error)
