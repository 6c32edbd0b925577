"""Tells which cards a device of somebody else's is: ids that device plugins, CDI and DRA drivers use. Pure.

A uuid is a card in every list, with whatever behind it (`GPU-…::3`, `GPU-…-0`). Numbers count only where NVIDIA's
own plugin or driver speaks: others count things that are no cards. What is not understood names no card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from partage_gpu.discovery.known import KnownCards, gpu_of
from partage_plugins.vocabulary.names import CardId

NVIDIA: Final = "nvidia.com"
_BY_INDEX: Final = re.compile(r"(?:mig)?([0-9]{1,4})(?:$|:)", re.ASCII)
"""CDI and device plugins: `0`, `0:1` and `mig0:1` for an instance, `0::3` for a replica."""
_BY_MINOR: Final = re.compile(r"(?:^|-)(?:gpu-|nvidia)([0-9]{1,4})(?![0-9])", re.ASCII)
"""DRA: `gpu-0`, `gpu-0-mig-…`, and behind a claim's uid; other device plugins: `nvidia0`."""
_LONGEST: Final = 1024


class Names:
    def __init__(self, known: KnownCards) -> None:
        self._known = known
        self._cards: dict[CardId, set[CardId]] = {}
        for card in known.cards.values():
            self._cards.setdefault(card.id, set()).add(card.id)
            self._cards.setdefault(gpu_of(card), set()).add(card.id)

    def cards_of(self, resource: str, device: str) -> frozenset[CardId]:
        """The cards that `device` of `resource` stands for; of a GPU that is cut into instances, all of them."""
        kind, _, name = device[:_LONGEST].rpartition("=")
        by_id = {card for id_ in self._cards if _stands_in(id_, name) for card in self._cards[id_]}
        if by_id or not _is_nvidias(kind or resource):
            return frozenset(by_id)
        if name == "all":
            return frozenset(self._known.cards)
        return frozenset(card for gpu in self._counted(name) for card in self._cards.get(gpu, ()))

    def _counted(self, name: str) -> Iterator[CardId]:
        by_index, by_minor = _BY_INDEX.match(name), _BY_MINOR.search(name)
        for gpu, numbers in self._known.numbers.items():
            minor = numbers.by_nvml if numbers.minor is None else numbers.minor
            if (by_index and int(by_index[1]) == numbers.by_nvml) or (by_minor and int(by_minor[1]) == minor):
                yield gpu


def _stands_in(id_: CardId, name: str) -> bool:
    """Whether the id is in the name, and not only the beginning of a longer one."""
    at = name.find(id_)
    return at >= 0 and not name[at + len(id_) : at + len(id_) + 1].isalnum()


def _is_nvidias(resource: str) -> bool:
    domain = resource.partition("/")[0]
    return domain == NVIDIA or domain.endswith(f".{NVIDIA}")
