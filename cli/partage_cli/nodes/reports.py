"""Interprets the inventories and heartbeats of nodes for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from partage_base.kube.objects import Lease, Node
from partage_cli.tables import age
from partage_plugins.api import GPU, Card
from partage_plugins.api.inventory import Ready
from partage_plugins.api.keys import INVENTORY, KEYS
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import DecodeError

DEFAULT_LASTS_S: Final = 40


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The last renewal of the heartbeat by the node's advertiser."""

    at: datetime
    age_s: float
    stale: bool
    """Too old, so the inventory may be out of date."""


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    heartbeat: Heartbeat | None = None
    """None if it was never renewed."""
    ready: Ready = Ready()
    why: str = ""
    """Why the node is not in force; empty if it is."""
    keys: tuple[str, ...] = ()
    """Keys that the node trusts, as its heartbeat lists them."""
    driver: str | None = None
    cuda: str | None = None
    cards: tuple[Card, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of the query."""

    nodes: tuple[NodeReport, ...] = ()
    without_inventory: tuple[str, ...] = ()
    faults: Mapping[str, str] = {}
    """Decode errors of inventories, by node."""

    def why_not(self, name: str) -> str:
        """Why a node is not in force, the one source for all commands; empty if it is."""
        if name in self.faults:
            return f"its inventory can't be read: {self.faults[name]}"
        return next((each.why for each in self.nodes if each.node == name), "its advertiser has not said what it has")


def of_cluster(
    nodes: Iterable[Node], leases: Iterable[Lease], now: datetime, *, unread: Mapping[str, str] | None = None
) -> Report:
    """Reports from annotations of Nodes and the Leases of the same names; `unread`: errors of undecodable Nodes."""
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
    """The report with its heartbeat and the data on the Lease."""
    beat = heartbeat(lease, now)
    why = "; ".join(filter(None, (_why_silent(beat), report.why)))
    return msgspec.structs.replace(report, heartbeat=beat, keys=keys_told(lease), why=why)


def of_node(name: str, text: str | bytes, beat: Heartbeat | None) -> NodeReport:
    """A report from an inventory's text; raises `DecodeError`."""
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
    """Why daemons are not ready. A node whose cards are all in the pool `dra` needs no crishim."""
    needs_crishim = not cards or any(card.pool != "dra" for card in cards)
    lacking = [
        name
        for name, lacks in (("crishim", not ready.crishim and needs_crishim), ("broker", not ready.broker))
        if lacks
    ]
    if not lacking:
        return ""
    return ready.why or f"{' and '.join(lacking)} not in force"  # older advertisers send no `why`


def _why_silent(beat: Heartbeat | None) -> str:
    if beat is None:
        return "its advertiser has no heartbeat"
    return f"its advertiser was last heard of {age(beat.age_s)} ago" if beat.stale else ""


def heartbeat(lease: Lease | None, now: datetime) -> Heartbeat | None:
    """The Lease's heartbeat; None if it was never renewed."""
    at = None if lease is None else moment(lease.spec.renew_time)
    if lease is None or at is None:
        return None
    age_s = round((now - at).total_seconds(), 3)
    return Heartbeat(at=at, age_s=age_s, stale=age_s > (lease.spec.lease_duration_seconds or DEFAULT_LASTS_S))


def keys_told(lease: Lease | None) -> tuple[str, ...]:
    """The keys that the node trusts, from the Lease's annotation."""
    text = "" if lease is None else lease.metadata.annotations.get(KEYS, "")
    return tuple(filter(None, text.split(",")))


def moment(text: str) -> datetime | None:
    """Parse a time of the API server; None if it is empty or malformed."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):  # written by another client
        return None


def _in_order(cards: Iterable[Card]) -> list[Card]:
    """GPUs by index, each followed by its MIG instances."""
    found = tuple(cards)
    indices = {card.id: card.index for card in found}

    def place(card: Card) -> tuple[int, str, bool, int]:
        whole = card.parent or card.id
        return indices.get(whole, card.index), whole, card.parent is not None, card.index

    return sorted(found, key=place)
