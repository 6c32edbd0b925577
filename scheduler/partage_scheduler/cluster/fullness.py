"""How full the cluster is, and how fragmented its free share is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from partage_plugins.api import GPU, Allocation, Card, Inventory
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.usage import Usage, usages


class Fullness(Struct, frozen=True):
    """Totals over all cards that are shared and not lost."""

    cards: int = 0
    free_cards: int = 0
    """Cards that no pod is on."""
    memory_bytes: int = 0
    given_share_milli: int = 0
    """At most the whole of each card, even if more counts on it."""
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


class Load(NamedTuple):
    """A card that is shared and not lost, and what pods hold of it."""

    card: Card
    share_milli: int = 0
    memory_bytes: int = 0
    is_used: bool = False


def fullness(nodes: Iterable[tuple[Inventory, Iterable[Allocation]]]) -> Fullness:
    """Totals over nodes, each with its inventory and the allocations on it."""
    return together(
        whole(loads(inventory, (usage for each in allocations for usage in usages(each))))
        for inventory, allocations in nodes
    )


def loads(inventory: Inventory, held: Iterable[Usage]) -> list[Load]:
    """The shared cards of one node with what is held of them; usages of other cards are left out."""
    part = inventory.part(GPU)
    found = {card.id: Load(card) for card in part.cards if card.pool == "shared" and not card.is_lost} if part else {}
    for usage in held:
        if (before := found.get(usage.card)) is not None:
            share, memory = before.share_milli + usage.share_milli, before.memory_bytes + usage.memory_bytes
            found[usage.card] = Load(before.card, share, memory, is_used=True)
    return list(found.values())


def whole(cards: Iterable[Load]) -> Fullness:
    """How full all these cards are."""
    count = free = memory = given_share = given_memory = 0
    for load in cards:
        count += 1
        free += not load.is_used
        memory += load.card.memory_bytes
        given_share += min(load.share_milli, WHOLE_MILLI)
        given_memory += min(load.memory_bytes, load.card.memory_bytes)
    return Fullness(count, free, memory, given_share, given_memory)


def together(parts: Iterable[Fullness]) -> Fullness:
    """Sums the totals of several nodes."""
    return Fullness(*map(sum, zip(*map(astuple, parts), strict=True)))
