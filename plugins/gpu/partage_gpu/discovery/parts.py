"""Formats the cards with health and pool as the inventory's part, and as gauges. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, get_args

from msgspec.structs import replace

from partage_gpu.discovery.causes import BLIND, plain
from partage_gpu.discovery.device_plugin import Hands
from partage_gpu.discovery.health import History, told
from partage_gpu.discovery.known import KnownCards, Links, gpu_of
from partage_gpu.discovery.pool import Pools
from partage_gpu.nvml.facts import Sample
from partage_plugins.api.gpu import Card, GpuPart, Pool
from partage_plugins.api.health import CardHealth, HealthCause
from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.names import CardId
from partage_plugins.api.node import Gauge


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The results of discovery for the known cards."""

    histories: Mapping[CardId, History]
    """By GPU."""
    pools: Pools
    beyond: Mapping[CardId, int] = field(default_factory=dict)
    """Bytes that may be promised beyond a card's memory."""
    blind: AbstractSet[CardId] = frozenset()
    """GPUs that are not shared because NVML does not report the memory of processes."""
    hands: Hands = field(default_factory=Hands)
    paused: str | None = None
    """Why no look is made."""


def part_of(known: KnownCards, findings: Findings) -> GpuPart | None:
    """The cards with their health, in order; None if none was ever seen."""
    if not known.cards:
        return None
    cards = tuple(_finished(card, index, findings) for index, card in enumerate(known.in_order()) if index < MAX_CARDS)
    links = _matrix(cards, known.links)
    return GpuPart(driver=known.driver, cuda=known.cuda, cards=cards, links=links, reservable=findings.pools.reservable)


def _finished(card: Card, index: int, findings: Findings) -> Card:
    pool = findings.pools.of(card.id)
    beyond, reservation = findings.beyond.get(card.id, 0), findings.hands.reserved.get(card.id)
    placed = replace(card, index=index, pool=pool, beyond_bytes=beyond, reservation=reservation)
    return placed.being(_health(card, findings, pool))


def _health(card: Card, findings: Findings, pool: Pool) -> CardHealth:
    if findings.paused is not None:
        return CardHealth.degraded(HealthCause.PAUSED, plain(f"paused: {findings.paused}"))
    health = told(findings.histories.get(gpu_of(card), History()))
    if health.state == "ok" and (hands := _in_wrong_hands(card.id, findings.hands, pool)) is not None:
        return CardHealth.degraded(HealthCause.NATIVE, plain(hands))
    if health.state == "ok" and gpu_of(card) in findings.blind:
        return BLIND
    return health


def _in_wrong_hands(card: CardId, hands: Hands, pool: Pool) -> str | None:
    """The holder, if the card should not have been given away in this way."""
    match pool:
        case "shared":
            return hands.given.get(card)
        case "dra":
            return hands.by_others.get(card)
        case _:
            return None


def _matrix(cards: tuple[Card, ...], links: Links) -> tuple[tuple[int, ...], ...]:
    """NVLinks between cards; the larger of two differing counts. Empty if there are none."""
    rows = tuple(tuple(_between(one, other, links) for other in cards) for one in cards)
    return rows if any(map(any, rows)) else ()


def _between(one: Card, other: Card, links: Links) -> int:
    if one.id == other.id:
        return 0
    return max(links.get(one.id, {}).get(other.id, 0), links.get(other.id, {}).get(one.id, 0))


HEALTHS: Final = ("ok", "degraded", "lost")
POOLS: Final = get_args(Pool)


def gauges(node: str, samples: Iterable[Sample], part: GpuPart | None) -> list[Gauge]:
    """The cards' own measurements, and the inventory's state of them; each measurement once."""
    return [*_measured(node, {sample.uuid: sample for sample in samples}.values()), *_said(node, part)]


def _measured(node: str, samples: Iterable[Sample]) -> Iterator[Gauge]:
    for sample in samples:
        labels = _labels(node, sample.uuid, sample.model)
        figures = {
            "gpu_memory_used_bytes": sample.used_bytes,
            "gpu_memory_bytes": sample.total_bytes,
            "gpu_utilisation_ratio": sample.utilisation,
            "gpu_temperature_celsius": sample.temperature_celsius,
            "gpu_power_watts": sample.power_watts,
        }
        for name, figure in figures.items():
            if figure is not None:
                yield Gauge(name=name, value=float(figure), labels=labels)


def _said(node: str, part: GpuPart | None) -> Iterator[Gauge]:
    """One series for each state, so that a rule can query any of them."""
    for card in part.cards if part else ():
        labels = _labels(node, card.id, card.model)
        for health in HEALTHS:
            yield Gauge(name="gpu_health", value=float(health == card.state), labels={**labels, "health": health})
        for pool in POOLS:
            yield Gauge(name="gpu_pool", value=float(pool == card.pool), labels={**labels, "pool": pool})


def _labels(node: str, uuid: str, model: str) -> dict[str, str]:
    return {"node": node, "device_uuid": uuid, "model": plain(model, otherwise="unknown")}
