"""The inventory as a file of the node, for crishim: always whole, and written only when it says something new."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from partage_plugins.vocabulary.places import INVENTORY_FILE

_MODE: Final = 0o644


class InventoryFile:
    """The file, below the node's root."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE
        self._new = self._path.with_name(f".{self._path.name}.new")  # one writer, one name: a killed one's is reused

    def text(self) -> bytes | None:
        """What stands in it; None where there is none."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, text: bytes) -> bool:
        """Makes it say so; whether it did not before. Raises `OSError`, and then the old one stands."""
        if self.text() == text:
            return False
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            self._fill(self._new, text)
            self._new.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                self._new.unlink()
            raise
        return True

    def remove(self) -> bool:
        """Takes it away; whether there was one."""
        self._new.unlink(missing_ok=True)
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def _fill(self, path: Path, text: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _MODE)  # whatever the umask
            file.write(text)
