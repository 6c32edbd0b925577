"""What people should hear of when the inventory changes, in their words. Pure.

Only differences speak: a new start with an inventory that says the same says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from partage_plugins.vocabulary import GPU, Card, CardId
from partage_plugins.vocabulary.inventory import Inventory, Ready

_IN_NATIVE_HANDS: Final = "degraded: kubelet gave it to "


class Happening(NamedTuple):
    """One thing that happened to the node."""

    type: Literal["Normal", "Warning"]
    reason: str
    """In CamelCase, for machines."""
    message: str


def happenings(before: Inventory | None, after: Inventory) -> tuple[Happening, ...]:
    """From one inventory to the next; of the first there is only what is wrong."""
    cards = _cards(after)
    was = _cards(before) if before else {}
    told = [each for id_, card in cards.items() for each in _of_card(was.get(id_), card, is_first=before is None)]
    told += [_removed(card) for id_, card in was.items() if id_ not in cards]
    return (*told, *(_of_ready(before.ready, after.ready) if before else ()))


def _cards(inventory: Inventory) -> Mapping[CardId, Card]:
    part = inventory.part(GPU)
    return {card.id: card for card in part.cards} if part else {}


def _of_card(before: Card | None, card: Card, *, is_first: bool) -> Iterator[Happening]:
    health = before.health if before else "ok"
    if card.health != health:
        yield _of_health(card)
    if before is None and not is_first and card.health == "ok":
        yield Happening("Normal", "CardFound", f"{_named(card)} is new on this node.")
    if before is not None and before.pool != card.pool:
        yield Happening("Normal", "CardPoolChanged", f"{_named(card)} is handed out by {_whose(card)} now.")


def _of_health(card: Card) -> Happening:
    if card.health == "ok":
        return Happening("Normal", "CardRecovered", f"{_named(card)} works again and takes new pods.")
    if card.is_lost:
        why = f": {card.lost_because}" if card.lost_because else ""
        return Happening("Warning", "CardLost", f"{_named(card)} is lost{why}. Pods that have it can't use it.")
    if card.health.startswith(_IN_NATIVE_HANDS):
        why = card.health.removeprefix("degraded: ")
        advice = "Two owners hand out this card: give it to one of them with PARTAGE_GPU_POOL."
        return Happening("Warning", "CardGivenTwice", f"{_named(card)} is shared, but {why}. {advice}")
    why = card.health.removeprefix("degraded: ")
    return Happening("Warning", "CardDegraded", f"{_named(card)} takes no new pods: {why}.")


def _removed(card: Card) -> Happening:
    what = "MIG instance" if card.parent else "card"
    return Happening("Normal", "CardRemoved", f"{_named(card)}: this {what} is no longer on this node.")


def _of_ready(before: Ready, after: Ready) -> Iterator[Happening]:
    if before.crishim and not after.crishim:
        advice = "check its --container-runtime-endpoint with partage doctor on the node"
        yield Happening(
            "Warning", "CrishimAway", f"kubelet does not speak through crishim; no shared pods come here: {advice}."
        )
    if before.broker and not after.broker:
        yield Happening("Warning", "BrokerAway", "The broker gives no sign of life; no shared pods come here.")
    if after.crishim and not before.crishim:
        yield Happening("Normal", "CrishimInForce", "kubelet speaks through crishim.")
    if after.broker and not before.broker:
        yield Happening("Normal", "BrokerInForce", "The broker is in force.")


def _named(card: Card) -> str:
    return f"Card {card.index} ({card.model}, {card.id})"


def _whose(card: Card) -> str:
    return "partage" if card.pool == "shared" else "kubelet"
