"""What exists on this node, as the advertiser wrote it: read again when the file changed. No driver is asked here.

While the file is missing or cannot be read, grants are refused. The guard must know even then whether the node has
cards: the driver's own control device tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, GpuPart, Kind
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES
from partage_plugins.vocabulary.places import INVENTORY_FILE

_DRIVER: Final = "dev/nvidiactl"
Facts = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class NodeInventory:
    parts: Mapping[Kind, object]
    """As they were written, for plugins."""
    gpu: GpuPart | None


class InventoryFile:
    """The file, below the node's root."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE
        self._driver = root / _DRIVER
        self._facts: Facts | None = None
        self._known: NodeInventory | None = None

    def current(self) -> NodeInventory | None:
        """What exists now; None where that is unknown."""
        try:
            status = self._path.stat()
            facts = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if facts != self._facts:
                self._known = self._read()
                self._facts = facts
        except (OSError, DecodeError):
            self._facts = self._known = None
        return self._known

    def has_cards(self) -> bool:
        """Whether there are cards here that a container could reach."""
        known = self.current()
        if known is None:
            return self._driver.exists()
        return known.gpu is not None and bool(known.gpu.cards)

    def _read(self) -> NodeInventory:
        with self._path.open("rb") as file:
            raw = file.read(MAX_ANNOTATION_BYTES + 1)
        return NodeInventory(parts=decode_inventory(raw, ()).kinds, gpu=decode_inventory(raw, (GPU,)).part(GPU))
