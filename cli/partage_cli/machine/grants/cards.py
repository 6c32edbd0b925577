"""Cards of this machine as CDI describes them: the document that the GPU plugin keeps for all containers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_base.inventory_file import InventoryFile
from partage_gpu.node.nvidia_specs import OUR_FILE
from partage_gpu.node.spec_file import OwnKind
from partage_plugins.errors import Refused
from partage_plugins.vocabulary import GpuPart
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.places import CDI_FOLDER

_UNKNOWN: Final = "which cards there are is not known; is partage-inventory running?"


class CdiCards:
    """Everything here may raise `Refused`, and `OSError`."""

    def __init__(self, root: Path, driver_root: Path) -> None:
        self._file = root / CDI_FOLDER / OUR_FILE
        self._inventory, self._kind = InventoryFile(root), OwnKind(root, str(driver_root))

    def part(self) -> GpuPart:
        known = self._inventory.current()
        if known is None or known.gpu is None:
            raise Refused(_UNKNOWN)
        return known.gpu

    def document(self, ids: Sequence[CardId]) -> Any:  # noqa: ANN401  a file's content
        """In which these are, as they are to be had now."""
        part = self.part()
        cards = tuple(card for card in map(part.card, ids) if card is not None)
        self._kind.ensure(cards, part)
        return msgspec.json.decode(self._file.read_bytes())
