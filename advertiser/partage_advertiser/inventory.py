"""Where an inventory goes: the node's file, then its audience, which hears besides of what is different.

A file that can't be written does not stop the rest: the cluster still hears that a card is lost. But then crishim reads
something else than the scheduler, so the caller is told, and must not vouch for it by a heartbeat.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import structlog

from partage_advertiser.audience import Audience
from partage_advertiser.happenings import happenings
from partage_base.files import write_whole
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.errors import DecodeError, PartageError
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.places import INVENTORY_FILE

_MODE: Final = 0o644
_log = structlog.get_logger()


class NoInventory(PartageError):
    """Plugins do not say what exists, or the file of it can't be written."""


class InventoryFile:
    """For crishim: always whole, and written only when it says something new."""

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


class Outlets:
    """The file of one node, and who hears of it."""

    def __init__(self, file: InventoryFile, audience: Audience) -> None:
        self._file, self._audience = file, audience
        self.told: Inventory | None = _last_told(file)
        """The last one; at the start, that of the advertiser before us."""

    def tell(self, inventory: Inventory) -> None:
        """Everywhere; `NoInventory` or `DecodeError` where that is not so."""
        text = encode_inventory(inventory)
        before, self.told = self.told, inventory
        fault = self._written(text)
        self._audience.want(text.decode())
        for happening in happenings(before, inventory):
            self._audience.tell(happening)
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
    """So that people hear of differences alone."""
    try:
        text = file.text()
        return decode_inventory(text, (GPU,)) if text else None
    except (OSError, DecodeError) as error:
        _log.warning("the old inventory file can't be read; a new one is made", why=str(error))
        return None
