"""Small files: the lock, sizes of contexts, and the advertiser's inventory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from partage_base.files import write_whole
from partage_isolation.errors import NoRows
from partage_isolation.ledger.samples import ContextSizes
from partage_plugins.api import GPU, GpuPart
from partage_plugins.api.gpu import Card
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES
from partage_plugins.api.names import CardId
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError

STATE: Final = "run/partage/state"
ROWS: Final = f"{STATE}/rows"
_SIZES: Final = f"{STATE}/contexts.json"
LOCK: Final = f"{STATE}/lock"
LOCK_WITHIN_S: Final = 10.0
_log: Final = structlog.get_logger()


def make_state_folder(root: Path) -> None:
    """Create the state folder, for root alone; raises `NoRows`."""
    folder = root / STATE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise NoRows(f"cannot keep the books in {folder}: {error.strerror}") from error


class SizesFile:
    """Sizes of contexts by card model: learned, and stored for the next broker."""

    def __init__(self, root: Path) -> None:
        self._path = root / _SIZES
        try:
            self.sizes = ContextSizes(msgspec.json.decode(self._path.read_bytes(), type=dict[str, int]))
        except (OSError, msgspec.MsgspecError):  # never learned; a damaged file is learned again
            self.sizes = ContextSizes()

    def learned(self, card: CardId, size: int) -> None:
        """Record the size of a context that a sample showed."""
        if self.sizes.learned(card, size):
            _log.info("measured a context", card=card, model=self.sizes.model_of(card), bytes=size)
            try:
                write_whole(self._path, msgspec.json.encode(self.sizes.known))
            except OSError as error:
                _log.warning("failed to store the sizes of contexts", why=str(error))


class Models:
    """The inventory's data on the driver and cards; read again when the file changes."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE
        self._facts: tuple[int, int, int] | None = None
        self._part: GpuPart | None = None

    def driver(self) -> str:
        """The node's driver version; empty where there is none, or none is known."""
        part = self._current()
        return part.driver if part is not None else ""

    def current(self) -> Mapping[CardId, Card]:
        part = self._current()
        return {card.id: card for card in part.cards} if part is not None else {}

    def bytes_of(self, card: CardId) -> int | None:
        """Bytes of the card that containers may use; None if unknown."""
        known = self.current().get(card)
        return known.memory_bytes if known else None

    def _current(self) -> GpuPart | None:
        try:
            status = self._path.stat()
            facts = status.st_ino, status.st_size, status.st_mtime_ns
            if facts != self._facts:
                self._facts, self._part = facts, self._read()
        except (OSError, DecodeError):  # the advertiser's log has the cause
            self._facts = None
        return self._part

    def _read(self) -> GpuPart | None:
        with self._path.open("rb") as file:
            raw = file.read(MAX_ANNOTATION_BYTES + 1)
        return decode_inventory(raw, (GPU,)).part(GPU)
