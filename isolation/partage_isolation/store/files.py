"""Small files: the lock, what contexts take, and the advertiser's inventory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from partage_base.files import write_whole
from partage_isolation.errors import NoRows
from partage_isolation.ledger.samples import ContextSizes
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, GpuPart
from partage_plugins.vocabulary.gpu import Card
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.places import INVENTORY_FILE

STATE: Final = "run/partage/state"
ROWS: Final = f"{STATE}/rows"
_SIZES: Final = f"{STATE}/contexts.json"
LOCK: Final = f"{STATE}/lock"
LOCK_WITHIN_S: Final = 10.0
_log: Final = structlog.get_logger()


def make_state_folder(root: Path) -> None:
    """For root alone; raises `NoRows`."""
    folder = root / STATE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise NoRows(f"cannot keep the books in {folder}: {error.strerror}") from error


class SizesFile:
    """What contexts take, by the model of the card: learned, and written down for the next broker."""

    def __init__(self, root: Path) -> None:
        self._path = root / _SIZES
        try:
            self.sizes = ContextSizes(msgspec.json.decode(self._path.read_bytes(), type=dict[str, int]))
        except (OSError, msgspec.MsgspecError):  # never learned; a file that is not whole is learned again
            self.sizes = ContextSizes()

    def learned(self, card: CardId, size: int) -> None:
        """A sample showed a context."""
        if self.sizes.learned(card, size):
            _log.info("a context was measured", card=card, model=self.sizes.model_of(card), bytes=size)
            try:
                write_whole(self._path, msgspec.json.encode(self.sizes.known))
            except OSError as error:
                _log.warning("what contexts take can't be written down", why=str(error))


class Models:
    """What the inventory says of the driver and its cards; read again when the file changed."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE
        self._facts: tuple[int, int, int] | None = None
        self._part: GpuPart | None = None

    def driver(self) -> str:
        """The version that the node has; empty where it has none, or none was told."""
        part = self._current()
        return part.driver if part is not None else ""

    def current(self) -> Mapping[CardId, Card]:
        part = self._current()
        return {card.id: card for card in part.cards} if part is not None else {}

    def bytes_of(self, card: CardId) -> int | None:
        """What containers may use of it; None: it is not known."""
        known = self.current().get(card)
        return known.memory_bytes if known else None

    def _current(self) -> GpuPart | None:
        try:
            status = self._path.stat()
            facts = status.st_ino, status.st_size, status.st_mtime_ns
            if facts != self._facts:
                self._facts, self._part = facts, self._read()
        except (OSError, DecodeError):  # the advertiser's own log says what is wrong with it
            self._facts = None
        return self._part

    def _read(self) -> GpuPart | None:
        with self._path.open("rb") as file:
            raw = file.read(MAX_ANNOTATION_BYTES + 1)
        return decode_inventory(raw, (GPU,)).part(GPU)
