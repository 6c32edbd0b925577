"""Looks at files of the node that may be missing, closed to us, or not what they should be: says so and goes on."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from partage_crishim.settings import CrishimSettings

_ENOUGH_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Unseen:
    """Why there is nothing to see."""

    path: Path
    why: str
    is_missing: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass(frozen=True)
class LocalNode:
    """The node that is asked about: where its files lie, and what its daemons were told."""

    root: Path
    name: str
    driver_root: Path = Path("/")
    """Where the driver is installed, below the root."""
    crishim: CrishimSettings = field(default_factory=CrishimSettings)
    kubeconfig: Path | None = None
    namespace: str = "partage-system"

    def path(self, inside: str | Path) -> Path:
        """A file of the node."""
        return self.root / str(inside).lstrip("/")

    def driver(self, inside: str) -> Path:
        """A file of the driver's installation."""
        return self.path(self.driver_root) / inside.lstrip("/")


def text_of(path: Path) -> str | Unseen:
    """The text of a file; never waits for one that is a pipe, and never reads one that has no end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        return _unseen(path, error)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Unseen(path, "is no file")
        raw = _beginning(descriptor)
    except OSError as error:
        return _unseen(path, error)
    finally:
        os.close(descriptor)
    if len(raw) > _ENOUGH_BYTES:
        return Unseen(path, f"is longer than {_ENOUGH_BYTES} bytes")
    return raw.decode(errors="replace")


def _beginning(descriptor: int) -> bytes:
    """All of it, unless it is longer than enough; files of /proc are read in pieces of their choice."""
    raw = bytearray()
    while len(raw) <= _ENOUGH_BYTES and (piece := os.read(descriptor, _ENOUGH_BYTES)):
        raw += piece
    return bytes(raw)


def names_in(folder: Path) -> tuple[str, ...] | Unseen:
    """The names in a folder, sorted."""
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208  names are wanted, and of /proc there are many
    except OSError as error:
        return _unseen(folder, error)


def status_of(path: Path) -> os.stat_result | Unseen:
    """Of what a path leads to."""
    try:
        return path.stat()
    except OSError as error:
        return _unseen(path, error)


def _unseen(path: Path, error: OSError) -> Unseen:
    if isinstance(error, FileNotFoundError | NotADirectoryError | ProcessLookupError):
        return Unseen(path, "is not there", is_missing=True)
    if isinstance(error, PermissionError):
        return Unseen(path, "may not be read as this user")
    return Unseen(path, error.strerror or str(error))
