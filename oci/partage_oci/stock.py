"""This machine's cards, from the advertiser's inventory file; reread when the file changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from partage_plugins.api import Inventory
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError
from partage_plugins.registry.registry import Registry


class Stock:
    def __init__(self, root: Path, registry: Registry, take_in: Callable[[Inventory], None]) -> None:
        self._path, self._kinds, self._take_in = root / INVENTORY_FILE, tuple(registry.kinds), take_in
        self._facts: tuple[int, int, int] | None = None
        self._why = ""

    def refresh(self) -> str:
        """Reread the file; returns an empty string, or why the current cards are unknown. What is held stays held."""
        try:
            status = self._path.stat()
            facts = (status.st_ino, status.st_size, status.st_mtime_ns)
            if facts != self._facts or self._why:
                with self._path.open("rb") as file:
                    raw = file.read(MAX_ANNOTATION_BYTES + 1)
                self._take_in(decode_inventory(raw, self._kinds))
                self._facts, self._why = facts, ""
        except OSError as error:
            self._why = f"{self._path}: {error.strerror}; is partage-inventory running?"
        except DecodeError as error:
            self._why = f"{self._path}: {error}; does partage-inventory run, in this version?"
        return self._why
