"""What the cards of this node are, from the file in which the advertiser says so; nothing where there is none yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, GpuPart
from partage_plugins.vocabulary.gpu import Card
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.places import INVENTORY_FILE


class Models:
    """Read again when the file changed."""

    def __init__(self, root: Path) -> None:
        self._path = root / INVENTORY_FILE
        self._facts: tuple[int, int, int] | None = None
        self._cards: Mapping[CardId, Card] = {}

    def current(self) -> Mapping[CardId, Card]:
        """By id."""
        try:
            status = self._path.stat()
            facts = status.st_ino, status.st_size, status.st_mtime_ns
            if facts != self._facts:
                self._facts, self._cards = facts, self._read()
        except (OSError, DecodeError):  # the advertiser's own log says what is wrong with it
            self._facts = None
        return self._cards

    def _read(self) -> Mapping[CardId, Card]:
        with self._path.open("rb") as file:
            raw = file.read(MAX_ANNOTATION_BYTES + 1)
        part: GpuPart | None = decode_inventory(raw, (GPU,)).part(GPU)
        return {card.id: card for card in part.cards} if part else {}
