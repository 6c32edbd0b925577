"""Where an inventory goes: the node's file, then the API server, then people, who hear of what is different.

A file that can't be written holds nobody else up: the cluster still hears that a card is lost. But then crishim reads
something else than the scheduler, so whoever tells is told, and must not vouch for it by a heartbeat.
"""

from __future__ import annotations

import structlog

from partage_advertiser.errors import NoInventory
from partage_advertiser.events import Events
from partage_advertiser.happenings import happenings
from partage_advertiser.inventory_file import InventoryFile
from partage_advertiser.publisher import Publisher
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory

_log = structlog.get_logger()


class Outlets:
    """Of one node."""

    def __init__(self, file: InventoryFile, publisher: Publisher, events: Events) -> None:
        self._file, self._publisher, self._events = file, publisher, events
        self.told: Inventory | None = _last_told(file)
        """The last one; at the start, that of the advertiser before us."""

    def tell(self, inventory: Inventory) -> None:
        """Everywhere; `NoInventory` or `DecodeError` where that is not so."""
        text = encode_inventory(inventory)
        before, self.told = self.told, inventory
        fault = self._written(text)
        self._publisher.want(text.decode())
        for happening in happenings(before, inventory):
            self._events.tell(happening)
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
        _log.warning("the inventory file of before can't be read; it is made anew", why=str(error))
        return None
