"""What a process can make long is read up to a bound: who is beyond it holds up no look at others."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MOST_MOUNTS: Final = 128 << 10
"""Bytes of mountinfo: a container has some dozens of mounts, of a few hundred bytes."""
MOST_MAPS: Final = 8 << 20
"""Bytes of maps: of as many mappings as the kernel allows a process at first, with paths of usual length."""


class TooLong(Exception):
    """Not all of it was read, so nothing can be said of it."""


def read_bounded(path: Path, most: int) -> str:
    """Raises `TooLong`, or `OSError` where the process is gone or dying."""
    with path.open("rb") as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise TooLong
    return raw.decode(errors="replace")
