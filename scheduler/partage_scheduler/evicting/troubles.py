"""What a node's inventory says of cards that are lost, and of a node that is to rest (paused, a driver upgrade)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from partage_plugins.vocabulary import GPU, Allocation, Card, CardId, HealthCause, Inventory

TroubleCode = Literal["CardLost", "NodePaused"]
LOST: Final[TroubleCode] = "CardLost"
PAUSED: Final[TroubleCode] = "NodePaused"


class Trouble(Struct, frozen=True):
    """Why whoever holds a card should leave."""

    reason: TroubleCode
    words: str


Troubles = Mapping[CardId, Trouble]


def troubles_of(inventory: Inventory) -> Troubles:
    """Of a node, by card."""
    part = inventory.part(GPU)
    found: dict[CardId, Trouble] = {}
    for card in part.cards if part is not None else ():
        if card.is_lost:
            found[card.id] = Trouble(LOST, f"card {card.id} is {card.condition}")
        elif card.cause == HealthCause.PAUSED:
            found[card.id] = Trouble(PAUSED, f"its node's cards are to rest: {_asked(card)}")
    return found


def _asked(card: Card) -> str:
    """In the words of who asks: that it is a pause is said already."""
    return (card.condition.why or "").removeprefix("paused: ")


def trouble_of(allocation: Allocation, troubles: Troubles) -> Trouble | None:
    """Of one pod; a lost card before anything else."""
    cards = (grant.card for grants in allocation.of(GPU).values() for grant in grants)
    found = [troubles[card] for card in cards if card in troubles]
    return min(found, key=lambda each: each.reason, default=None)
