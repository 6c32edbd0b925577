"""What a node's inventory says of cards that are lost, and of a node that is to rest (paused, a driver upgrade)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from partage_plugins.vocabulary import GPU, Allocation, CardId, Inventory

Reason = Literal["CardLost", "NodePaused"]
LOST: Final[Reason] = "CardLost"
PAUSED: Final[Reason] = "NodePaused"
_PAUSED: Final = "degraded: paused: "
"""How a card's health begins while its node rests."""


class Trouble(Struct, frozen=True):
    """Why whoever holds a card should leave."""

    reason: Reason
    words: str


Troubles = Mapping[CardId, Trouble]


def troubles_of(inventory: Inventory) -> Troubles:
    """Of a node, by card."""
    part = inventory.part(GPU)
    found: dict[CardId, Trouble] = {}
    for card in part.cards if part is not None else ():
        if card.is_lost:
            why = f": {card.lost_because}" if card.lost_because else ""
            found[card.id] = Trouble(LOST, f"card {card.id} is lost{why}")
        elif card.health.startswith(_PAUSED):
            found[card.id] = Trouble(PAUSED, f"its node's cards are to rest: {card.health.removeprefix(_PAUSED)}")
    return found


def trouble_of(allocation: Allocation, troubles: Troubles) -> Trouble | None:
    """Of one pod; a lost card before anything else."""
    cards = (grant.card for grants in allocation.of(GPU).values() for grant in grants)
    found = [troubles[card] for card in cards if card in troubles]
    return min(found, key=lambda each: each.reason, default=None)
