"""How full the cluster is, and how much of what is free lies in pieces. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from partage_plugins.vocabulary import GPU, Allocation, Card, CardId, Inventory
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.usage import usages


class Fullness(Struct, frozen=True, kw_only=True):
    """Of all cards that are shared and not lost."""

    cards: int = 0
    free_cards: int = 0
    """No pod is on them."""
    memory_bytes: int = 0
    given_share_milli: int = 0
    """Of no card more than all of it, whatever counts on it."""
    given_memory_bytes: int = 0

    @property
    def share_given(self) -> float:
        return self.given_share_milli / (WHOLE_MILLI * self.cards or 1)

    @property
    def memory_given(self) -> float:
        return self.given_memory_bytes / (self.memory_bytes or 1)

    @property
    def share_in_pieces(self) -> float:
        """The part of the free time that lies on cards in use, where no pod gets a whole card."""
        free = WHOLE_MILLI * self.cards - self.given_share_milli
        return (free - WHOLE_MILLI * self.free_cards) / free if free > 0 else 0.0


def fullness(nodes: Iterable[tuple[Inventory, Iterable[Allocation]]]) -> Fullness:
    cards = free = memory = given_share = given_memory = 0
    for inventory, allocations in nodes:
        there = _cards(inventory)
        held = _held(there, allocations)
        cards += len(there)
        free += len(there.keys() - held.keys())
        memory += sum(card.memory_bytes for card in there.values())
        given_share += sum(min(share, WHOLE_MILLI) for share, _ in held.values())
        given_memory += sum(min(size, there[card].memory_bytes) for card, (_, size) in held.items())
    return Fullness(
        cards=cards,
        free_cards=free,
        memory_bytes=memory,
        given_share_milli=given_share,
        given_memory_bytes=given_memory,
    )


def _cards(inventory: Inventory) -> dict[CardId, Card]:
    part = inventory.part(GPU)
    return {card.id: card for card in part.cards if card.pool == "shared" and not card.is_lost} if part else {}


def _held(cards: Mapping[CardId, Card], allocations: Iterable[Allocation]) -> dict[CardId, tuple[int, int]]:
    held: dict[CardId, tuple[int, int]] = {}
    for allocation in allocations:
        for usage in usages(allocation):
            if usage.card in cards:
                share, memory = held.get(usage.card, (0, 0))
                held[usage.card] = share + usage.share_milli, memory + usage.memory_bytes
    return held
