"""Makes the inventory's part of what is known of the cards, how they are, and whose they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from msgspec.structs import replace

from partage_gpu.discovery.causes import BLIND, plain
from partage_gpu.discovery.health import History, told
from partage_gpu.discovery.known import KnownCards, Links, gpu_of
from partage_plugins.vocabulary.gpu import Card, GpuPart
from partage_plugins.vocabulary.health import CardHealth, HealthCause
from partage_plugins.vocabulary.limits import MAX_CARDS
from partage_plugins.vocabulary.names import CardId


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that was found out about the known cards."""

    histories: Mapping[CardId, History]
    """By GPU."""
    shared: AbstractSet[CardId]
    blind: AbstractSet[CardId] = frozenset()
    """GPUs that are not shared for it."""
    given: Mapping[CardId, str] = field(default_factory=dict)
    """In whose hands kubelet put a card, in words."""
    paused: str | None = None
    """Why no look is made."""


def part_of(known: KnownCards, findings: Findings) -> GpuPart | None:
    """The cards with their health, in order; None where none was ever seen."""
    if not known.cards:
        return None
    cards = tuple(_finished(card, index, findings) for index, card in enumerate(known.in_order()) if index < MAX_CARDS)
    return GpuPart(driver=known.driver, cuda=known.cuda, cards=cards, links=_matrix(cards, known.links))


def _finished(card: Card, index: int, findings: Findings) -> Card:
    is_shared = card.id in findings.shared
    placed = replace(card, index=index, pool="shared" if is_shared else "kubelet")
    return placed.being(_health(card, findings, is_shared=is_shared))


def _health(card: Card, findings: Findings, *, is_shared: bool) -> CardHealth:
    if findings.paused is not None:
        return CardHealth.degraded(HealthCause.PAUSED, plain(f"paused: {findings.paused}"))
    health = told(findings.histories.get(gpu_of(card), History()))
    if health.state == "ok" and is_shared and (hands := findings.given.get(card.id)) is not None:
        return CardHealth.degraded(HealthCause.NATIVE, plain(hands))
    if health.state == "ok" and gpu_of(card) in findings.blind:
        return BLIND
    return health


def _matrix(cards: tuple[Card, ...], links: Links) -> tuple[tuple[int, ...], ...]:
    """NVLinks between cards; of two that say different things, one saw more. Empty where there are none."""
    rows = tuple(tuple(_between(one, other, links) for other in cards) for one in cards)
    return rows if any(map(any, rows)) else ()


def _between(one: Card, other: Card, links: Links) -> int:
    return (
        0 if one.id == other.id else max(links.get(one.id, {}).get(other.id, 0), links.get(other.id, {}).get(one.id, 0))
    )
