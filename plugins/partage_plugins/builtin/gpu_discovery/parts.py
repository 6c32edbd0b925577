"""Makes the inventory's part of what is known of the cards, how they are, and whose they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from partage_plugins.builtin.gpu_discovery.causes import plain
from partage_plugins.builtin.gpu_discovery.health import History, told
from partage_plugins.builtin.gpu_discovery.known import Known, Links, gpu_of
from partage_plugins.vocabulary.gpu import Card, GpuPart
from partage_plugins.vocabulary.limits import MAX_CARDS
from partage_plugins.vocabulary.names import CardId

_OK: Final = "ok"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that was found out about the known cards."""

    histories: Mapping[CardId, History]
    """By GPU."""
    shared: AbstractSet[CardId]
    given: Mapping[CardId, str] = field(default_factory=dict)
    """In whose hands kubelet put a card, in words."""
    paused: str | None = None
    """Why nobody looks."""


def part_of(known: Known, findings: Findings) -> GpuPart | None:
    """The cards with their health, in order; None where none was ever seen."""
    if not known.cards:
        return None
    cards = tuple(_finished(card, index, findings) for index, card in enumerate(known.in_order()) if index < MAX_CARDS)
    return GpuPart(driver=known.driver, cuda=known.cuda, cards=cards, links=_matrix(cards, known.links))


def _finished(card: Card, index: int, findings: Findings) -> Card:
    is_shared = card.id in findings.shared
    health, lost_because = _health(card, findings, is_shared=is_shared)
    pool = "shared" if is_shared else "kubelet"
    return replace(card, index=index, health=health, lost_because=lost_because, pool=pool)


def _health(card: Card, findings: Findings, *, is_shared: bool) -> tuple[str, str | None]:
    if findings.paused is not None:
        return _degraded(f"paused: {findings.paused}"), None
    health, lost_because = told(findings.histories.get(gpu_of(card), History()))
    if health == _OK and is_shared and (hands := findings.given.get(card.id)) is not None:
        return _degraded(hands), None
    return health, lost_because


def _degraded(why: str) -> str:
    return f"degraded: {plain(why)}"


def _matrix(cards: tuple[Card, ...], links: Links) -> tuple[tuple[int, ...], ...]:
    """NVLinks between cards; of two that say different things, one saw more. Empty where there are none."""
    rows = tuple(tuple(_between(one, other, links) for other in cards) for one in cards)
    return rows if any(map(any, rows)) else ()


def _between(one: Card, other: Card, links: Links) -> int:
    return (
        0 if one.id == other.id else max(links.get(one.id, {}).get(other.id, 0), links.get(other.id, {}).get(one.id, 0))
    )
