"""Condition changes between two inventories that people should see, as messages. Pure.

Only differences are reported: a restart with an unchanged inventory reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from partage_base.condition import Fault, Guarded
from partage_plugins.api import GPU, Card, CardId, HealthCause
from partage_plugins.api.gpu import HANDED_OUT_BY
from partage_plugins.api.inventory import Inventory, Ready


class ConditionChange(NamedTuple):
    """One condition change of the node."""

    type: Literal["Normal", "Warning"]
    reason: str
    """CamelCase, for programs."""
    message: str


def condition_changes(before: Inventory | None, after: Inventory) -> tuple[ConditionChange, ...]:
    """Changes from one inventory to the next; for the first inventory, only problems."""
    cards = _cards(after)
    was = _cards(before) if before else {}
    told = [each for id_, card in cards.items() for each in _of_card(was.get(id_), card, is_first=before is None)]
    told += [_removed(card) for id_, card in was.items() if id_ not in cards]
    return (*told, *(_of_ready(before.ready, after.ready) if before else ()))


def of_crishim(fault: Fault) -> ConditionChange:
    """A fault that crishim reports about itself."""
    end = "; no shared pods come here." if fault.refuses else "."
    return ConditionChange("Warning", f"Crishim{fault.cause.capitalize()}", f"crishim: {fault.sentence}{end}")


def of_guarded(guarded: Guarded) -> ConditionChange:
    """A container that was kept from cards, which its own output does not show."""
    who = f"Container {guarded.container} of pod {guarded.namespace}/{guarded.pod}"
    advice = "ask for partage.dev/ resources, or name its namespace in crishim's trusted_namespaces"
    return ConditionChange(
        "Warning", "ContainerGuarded", f"{who} asked for cards that nobody gave it, and got none: {advice}."
    )


def _cards(inventory: Inventory) -> Mapping[CardId, Card]:
    part = inventory.part(GPU)
    return {card.id: card for card in part.cards} if part else {}


def _of_card(before: Card | None, card: Card, *, is_first: bool) -> Iterator[ConditionChange]:
    health = before.health if before else "ok"
    if card.health != health:
        yield _of_health(card)
    if before is None and not is_first and card.health == "ok":
        yield ConditionChange("Normal", "CardFound", f"{_named(card)} is new on this node.")
    if before is not None and before.pool != card.pool:
        yield ConditionChange(
            "Normal", "CardPoolChanged", f"{_named(card)} is handed out by {HANDED_OUT_BY[card.pool]} now."
        )


def _of_health(card: Card) -> ConditionChange:
    if card.health == "ok":
        return ConditionChange("Normal", "CardRecovered", f"{_named(card)} works again and takes new pods.")
    if card.is_lost:
        return ConditionChange(
            "Warning", "CardLost", f"{_named(card)} is {card.condition}. Pods that have it can't use it."
        )
    why = card.condition.why
    if card.cause == HealthCause.NATIVE:
        advice = "Two owners hand out this card: give it to one of them with PARTAGE_GPU_POOL."
        return ConditionChange("Warning", "CardGivenTwice", f"{_named(card)} is shared, but {why}. {advice}")
    return ConditionChange("Warning", "CardDegraded", f"{_named(card)} takes no new pods: {why}.")


def _removed(card: Card) -> ConditionChange:
    what = "MIG instance" if card.parent else "card"
    return ConditionChange("Normal", "CardRemoved", f"{_named(card)}: this {what} is no longer on this node.")


def _of_ready(before: Ready, after: Ready) -> Iterator[ConditionChange]:
    if before.crishim and not after.crishim:
        advice = "partage doctor on the node says more"
        yield ConditionChange("Warning", "CrishimAway", f"No shared pods come here: {after.why}; {advice}.")
    if before.broker and not after.broker:
        yield ConditionChange("Warning", "BrokerAway", "The broker gives no sign of life; no shared pods come here.")
    if after.crishim and not before.crishim:
        yield ConditionChange("Normal", "CrishimInForce", "kubelet speaks through crishim, which honours allocations.")
    if after.broker and not before.broker:
        yield ConditionChange("Normal", "BrokerInForce", "The broker is in force.")


def _named(card: Card) -> str:
    return f"Card {card.index} ({card.model}, {card.id})"
