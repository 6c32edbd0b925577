"""Interprets nodes' inventories and heartbeats for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from partage_base.kube.objects import Lease, Node
from partage_cli.tables import age
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, Card
from partage_plugins.vocabulary.inventory import Ready
from partage_plugins.vocabulary.keys import INVENTORY, KEYS

DEFAULT_LASTS_S: Final = 40


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """When the node's advertiser last confirmed its inventory."""

    at: datetime
    age_s: float
    stale: bool
    """Too long ago: the inventory may be outdated."""


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    heartbeat: Heartbeat | None = None
    """None if there is none."""
    ready: Ready = Ready()
    why: str = ""
    """Why the node is not in force; empty if it is."""
    keys: tuple[str, ...] = ()
    """Keys that the node trusts, from its heartbeat."""
    driver: str | None = None
    cuda: str | None = None
    cards: tuple[Card, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes of a query."""

    nodes: tuple[NodeReport, ...] = ()
    without_inventory: tuple[str, ...] = ()
    faults: Mapping[str, str] = {}
    """By node: why its inventory can't be decoded."""

    def why_not(self, name: str) -> str:
        """Why a node is not in force, as all commands show it. Empty if it is."""
        if name in self.faults:
            return f"its inventory can't be read: {self.faults[name]}"
        return next((each.why for each in self.nodes if each.node == name), "its advertiser has not said what it has")


def of_cluster(
    nodes: Iterable[Node], leases: Iterable[Lease], now: datetime, *, unread: Mapping[str, str] | None = None
) -> Report:
    """From the annotations of nodes and the Leases of the same names; `unread` are undecodable nodes, and why."""
    beats = {lease.metadata.name: lease for lease in leases}
    reports: list[NodeReport] = []
    without: list[str] = []
    faults = dict(unread or {})
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        text = node.metadata.annotations.get(INVENTORY)
        if text is None:
            without.append(name)
            continue
        try:
            reports.append(with_lease(of_node(name, text, None), beats.get(name), now))
        except DecodeError as error:
            faults[name] = str(error)
    return Report(nodes=tuple(reports), without_inventory=tuple(without), faults=faults)


def with_lease(report: NodeReport, lease: Lease | None, now: datetime) -> NodeReport:
    """The report with the node's heartbeat, and what follows from it."""
    beat = heartbeat(lease, now)
    why = "; ".join(filter(None, (_why_silent(beat), report.why)))
    return msgspec.structs.replace(report, heartbeat=beat, keys=keys_told(lease), why=why)


def of_node(name: str, text: str | bytes, beat: Heartbeat | None) -> NodeReport:
    """A node's report from its inventory; raises `DecodeError`."""
    inventory = decode_inventory(text, (GPU,))
    part, ready = inventory.part(GPU), inventory.ready
    if part is None:
        return NodeReport(node=name, heartbeat=beat, ready=ready, why=_why_not_ready(ready, ()))
    return NodeReport(
        node=name,
        heartbeat=beat,
        ready=ready,
        why=_why_not_ready(ready, part.cards),
        driver=part.driver,
        cuda=part.cuda,
        cards=tuple(_in_order(part.cards)),
    )


def _why_not_ready(ready: Ready, cards: Sequence[Card]) -> str:
    """A node whose cards are all for claims needs no crishim."""
    needs_crishim = not cards or any(card.pool != "dra" for card in cards)
    lacking = [
        name
        for name, lacks in (("crishim", not ready.crishim and needs_crishim), ("broker", not ready.broker))
        if lacks
    ]
    if not lacking:
        return ""
    return ready.why or f"{' and '.join(lacking)} not in force"  # an older advertiser gives no reason


def _why_silent(beat: Heartbeat | None) -> str:
    if beat is None:
        return "its advertiser has no heartbeat"
    return f"its advertiser was last heard of {age(beat.age_s)} ago" if beat.stale else ""


def heartbeat(lease: Lease | None, now: datetime) -> Heartbeat | None:
    """A Lease's heartbeat; None if it was never renewed."""
    at = None if lease is None else moment(lease.spec.renew_time)
    if lease is None or at is None:
        return None
    age_s = round((now - at).total_seconds(), 3)
    return Heartbeat(at=at, age_s=age_s, stale=age_s > (lease.spec.lease_duration_seconds or DEFAULT_LASTS_S))


def keys_told(lease: Lease | None) -> tuple[str, ...]:
    """The keys that the node trusts, from the Lease; empty if it has none."""
    text = "" if lease is None else lease.metadata.annotations.get(KEYS, "")
    return tuple(filter(None, text.split(",")))


def moment(text: str) -> datetime | None:
    """A time in the API server's format; None if it is empty or invalid."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):  # not written by us
        return None


def _in_order(cards: Iterable[Card]) -> list[Card]:
    """Each GPU by its index, followed by its MIG instances."""
    found = tuple(cards)
    indices = {card.id: card.index for card in found}

    def place(card: Card) -> tuple[int, str, bool, int]:
        whole = card.parent or card.id
        return indices.get(whole, card.index), whole, card.parent is not None, card.index

    return sorted(found, key=place)
