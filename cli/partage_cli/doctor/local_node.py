"""Reads files of the node that may be missing, closed to us or irregular; reports why instead of failing."""

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
    """Why something could not be read."""

    path: Path
    why: str
    is_missing: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass(frozen=True)
class LocalNode:
    """The node to check: the root of its files, and its daemons' settings."""

    root: Path
    name: str
    driver_root: Path = Path("/")
    """Where the driver is installed, below the root."""
    crishim: CrishimSettings = field(default_factory=CrishimSettings)
    kubeconfig: Path | None = None
    namespace: str = "partage-system"

    def path(self, inside: str | Path) -> Path:
        """A path on the node."""
        return self.root / str(inside).lstrip("/")

    def driver(self, inside: str) -> Path:
        """A path in the driver's installation."""
        return self.path(self.driver_root) / inside.lstrip("/")


def text_of(path: Path) -> str | Unseen:
    """The text of a file; never blocks on a pipe, and never reads without bound."""
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
    """The contents, cut off just above the bound; reads of /proc return pieces of arbitrary size."""
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
    """The status of a path's target; follows symbolic links."""
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
