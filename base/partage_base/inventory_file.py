"""The node's inventory, as the advertiser wrote it; read again when the file changed. No driver is called here.

While the file is missing or unreadable, grants are refused. The device filter must know even then whether the node has
cards, and also before the advertiser has seen a driver that was loaded since: it looks for the driver's own files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_plugins.api import GPU, GpuPart, Kind
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError

_DRIVER: Final = ("dev/nvidiactl", "run/nvidia/driver/dev/nvidiactl", "proc/driver/nvidia/version")
"""The node's own driver or that of NVIDIA's operator; the last one is the loaded module's."""
Facts = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class NodeInventory:
    parts: Mapping[Kind, object]
    """As written, for plugins."""
    gpu: GpuPart | None


class InventoryFile:
    """The inventory file below the node's root."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE
        self._driver = tuple(root / each for each in _DRIVER)
        self._facts: Facts | None = None
        self._known: NodeInventory | None = None

    def current(self) -> NodeInventory | None:
        """The current inventory; None if it is unknown."""
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
        """Whether a container could reach cards here; true also if only a driver exists, which may find some."""
        known = self.current()
        if known is not None and known.gpu is not None and known.gpu.cards:
            return True
        return any(each.exists() for each in self._driver)

    def _read(self) -> NodeInventory:
        with self._path.open("rb") as file:
            raw = file.read(MAX_ANNOTATION_BYTES + 1)
        return NodeInventory(parts=decode_inventory(raw, ()).kinds, gpu=decode_inventory(raw, (GPU,)).part(GPU))
