"""Each card of a node compared with a container's request: what is free, which pods hold it, and the obstacles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from partage_plugins.api import GPU, Allocation, Card, CardId, GpuRequest, Inventory, Tags
from partage_plugins.api.card_memory import Promised, in_words, together
from partage_plugins.api.gpu import HANDED_OUT_BY
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.usage import usages
from partage_scheduler.objects import ApiPod

_SORTS: Final = "affinity, anti-affinity or exclusion"
Holders = Iterable[tuple[ApiPod, Allocation]]


class CardReport(Struct, frozen=True, kw_only=True):
    card: CardId
    model: str
    share_left_milli: int
    memory_left_bytes: int
    """For this request; without one, for memory that is not movable."""
    beyond_bytes: int = 0
    """How much may be promised beyond the card's own memory."""
    promised_bytes: int = 0
    """How much of the card's memory and of what is beyond it is promised."""
    holders: tuple[str, ...]
    """Pods on it, as namespace/name."""
    obstacles: tuple[str, ...]
    """Why the container can't have it; empty if it can."""


class _Held:
    def __init__(self) -> None:
        self.share = WHOLE_MILLI
        self.memory: list[Promised] = []
        self.pods: list[str] = []
        self.tags: list[Tags] = []


def cards_of(inventory: Inventory, holders: Holders, wanted: GpuRequest | None) -> tuple[CardReport, ...]:
    """Every card of a node; without a request, only what is free."""
    part = inventory.part(GPU)
    if part is None:
        return ()
    held = {card.id: _Held() for card in part.cards}
    for pod, allocation in holders:
        _count(held, f"{pod.namespace}/{pod.name}", allocation)
    return tuple(_stands(card, held[card.id], wanted) for card in part.cards)


def _count(held: dict[CardId, _Held], name: str, allocation: Allocation) -> None:
    for usage in usages(allocation):
        if (on := held.get(usage.card)) is not None:
            on.share -= usage.share_milli
            on.memory.append(usage.memory)
            on.pods.append(name)
    for grants in allocation.of(GPU).values():
        for grant in grants:
            if grant.card in held:
                held[grant.card].tags.append(grant.tags)


def _stands(card: Card, held: _Held, wanted: GpuRequest | None) -> CardReport:
    promised = together(held.memory)
    return CardReport(
        card=card.id,
        model=card.model,
        share_left_milli=held.share,
        memory_left_bytes=card.capacity.left(promised, movable=wanted is not None and wanted.movable),
        beyond_bytes=card.beyond_bytes,
        promised_bytes=promised.total,
        holders=tuple(held.pods),
        obstacles=() if wanted is None else tuple(_obstacles(card, held, wanted)),
    )


def _obstacles(card: Card, held: _Held, wanted: GpuRequest) -> Iterator[str]:
    if card.pool != ("dra" if wanted.is_claim else "shared"):
        yield f"{HANDED_OUT_BY[card.pool]} hands it out"
    if card.state != "ok":
        yield f"it is {card.condition}"
    yield from _not_asked_for(card, wanted)
    yield from _taken(card, held, wanted)
    if held.tags and not _suits(wanted.tags, held.tags):
        yield f"tags of who is on it keep the pod away ({_SORTS})"


def _not_asked_for(card: Card, wanted: GpuRequest) -> Iterator[str]:
    if not wanted.wants_model(card.model):
        yield f"its model {card.model} is not asked for"
    if not wanted.wants_instance(card.is_instance):
        yield "it is a MIG instance" if card.is_instance else "it is no MIG instance"
    if card.memory_bytes < wanted.least_card_bytes:
        yield "its memory is less than is asked for"
    if not wanted.wants_id(card):
        yield "its id is not asked for"


def _taken(card: Card, held: _Held, wanted: GpuRequest) -> Iterator[str]:
    if held.share < wanted.share_milli:
        yield f"{held.share} milli of share are left, {wanted.share_milli} are asked for"
    elif held.share < wanted.least_share_milli:
        yield "no share of it is left"
    if wanted.idle_cards and held.pods:
        yield "it holds others, and an empty one is asked for"
    memory, promised = wanted.memory_on(card.memory_bytes), together(held.memory)
    left = card.capacity.left(promised, movable=wanted.movable)
    if memory > card.memory_bytes:
        yield f"it has {card.memory_bytes >> 20}Mi of memory in all, {memory >> 20}Mi are asked for"
    elif left < memory:
        figures = f" ({in_words(card.capacity, promised)})" if card.beyond_bytes else ""
        yield f"{max(0, left) >> 20}Mi of memory are left, {memory >> 20}Mi are asked for{figures}"


def _suits(wanted: Tags, held: Sequence[Tags]) -> bool:
    if any(tags.exclusion != wanted.exclusion for tags in held):
        return False
    if wanted.affinity is not None and wanted.affinity not in {tags.affinity for tags in held}:
        return False
    return wanted.anti_affinity is None or wanted.anti_affinity not in {tags.anti_affinity for tags in held}
