"""Publishes an inventory: to the node's file, then to its sinks, together with the condition changes.

A file that cannot be written does not stop the rest: the cluster still learns that a card is lost. But crishim then
reads another inventory than the scheduler, so the caller gets an error and must not renew the heartbeat.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import structlog

from partage_advertiser.condition_changes import condition_changes
from partage_advertiser.sinks import Sink
from partage_base.files import write_whole
from partage_plugins.api import GPU
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.errors import DecodeError, PartageError

_MODE: Final = 0o644
_log = structlog.get_logger()


class NoInventory(PartageError):
    """Plugins do not report the devices, or the inventory file cannot be written."""


class InventoryFile:
    """The inventory file, for crishim: always complete, and written only on change."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE

    def text(self) -> bytes | None:
        """The file's content; None if there is no file."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, text: bytes) -> bool:
        """Write the text; returns whether it changed. Raises `OSError`, and then the old content stays."""
        if self.text() == text:
            return False
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(self._path, text, mode=_MODE)
        return True

    def remove(self) -> bool:
        """Remove the file; returns whether it existed."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True


class InventorySinks:
    """The file of one node, and its sinks."""

    def __init__(self, file: InventoryFile, sink: Sink) -> None:
        self._file, self._sink = file, sink
        self.told: Inventory | None = _last_told(file)
        """The last published inventory; at the start, the one that the previous advertiser wrote."""

    def tell(self, inventory: Inventory) -> None:
        """Publish everywhere; raises `NoInventory` or `DecodeError` if that fails."""
        text = encode_inventory(inventory)
        before, self.told = self.told, inventory
        fault = self._written(text)
        self._sink.want(text.decode())
        for happening in condition_changes(before, inventory):
            self._sink.tell(happening)
        if fault is not None:
            raise NoInventory(f"the inventory's file can't be written: {fault}; free room in /run, or mend it")

    def _written(self, text: bytes) -> OSError | None:
        try:
            if self._file.write(text):
                _log.info("inventory written", bytes=len(text))
        except OSError as error:
            return error
        return None


def _last_told(file: InventoryFile) -> Inventory | None:
    """The last published inventory, so that only differences are reported."""
    try:
        text = file.text()
        return decode_inventory(text, (GPU,)) if text else None
    except (OSError, DecodeError) as error:
        _log.warning("old inventory file is unreadable, creating a new one", why=str(error))
        return None
