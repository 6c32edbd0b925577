"""The inventory as a file of the node, for crishim: always whole, and written only when it says something new."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_plugins.vocabulary.places import INVENTORY_FILE

_MODE: Final = 0o644


class InventoryFile:
    """The file, below the node's root."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE

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
        write_whole(self._path, text, mode=_MODE)
        return True

    def remove(self) -> bool:
        """Takes it away; whether there was one."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True
