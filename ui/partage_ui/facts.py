"""A snapshot of all known state, and what views derive from it, each computed once for all viewers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from partage_cli.nodes.reports import NodeReport, Report
from partage_cli.top.grantees import Grantee, grantees
from partage_cli.usage.report import HeldTime
from partage_isolation.wire.messages import BrokerReport, CardHeld, CardReport
from partage_plugins.api import Card, CardId
from partage_plugins.api.card_memory import together
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.usage import Usage
from partage_ui.history import History
from partage_ui.objects import Needs, PodFact
from partage_ui.workload import Workload


class Scope(NamedTuple):
    """What one viewer may see."""

    namespaces: frozenset[str] | None = None
    """None: all of them."""
    nodes: bool = True
    note: str = ""
    """Tells the viewer what is not shown and why, as a sentence."""

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def of(self, workloads: Sequence[Workload]) -> Sequence[Workload]:
        if self.namespaces is None:
            return workloads
        return [each for each in workloads if each.namespace in self.namespaces]

    @property
    def sees_all(self) -> bool:
        return self.namespaces is None and self.nodes


class NodeTold(Struct, frozen=True, kw_only=True):
    """The parts that are kept of the last answer of a node's broker; made once for all views."""

    at: datetime
    why: str = ""
    """Why there is no answer."""
    cards: Mapping[CardId, CardReport] = {}
    findings: tuple[str, ...] = ()
    workloads: tuple[Workload, ...] = ()


def node_told(node: str, told: BrokerReport, history: History, at: datetime) -> NodeTold:
    """Adds to the history, too."""
    cards = {each.card: each for each in told.cards}
    found = tuple(
        _workload(node, grantee, held, cards.get(held.card), history, at.timestamp())
        for grantee in grantees(told.containers)
        for held in grantee.cards
    )
    return NodeTold(at=at, cards=cards, findings=told.findings, workloads=found)


def _workload(  # noqa: PLR0913, PLR0917 - what is known of it
    node: str, grantee: Grantee, held: CardHeld, card: CardReport | None, history: History, at_s: float
) -> Workload:
    key = (grantee.key, held.card)
    if held.time is not None:
        history.note(key, at_s, wanted=held.time.wanted.s60, got=held.time.got.s60)
    return Workload(
        namespace=grantee.pod.namespace,
        pod=grantee.pod.name,
        name=grantee.name,
        node=node,
        card=held.card,
        index=None if card is None else card.index,
        share_milli=held.share_milli,
        limit_milli=held.limit_milli,
        memory_bytes=held.granted_bytes,
        uid=grantee.pod.uid,
        held=held,
        is_whole=grantee.budget is None and len(grantee.cards) == 1,
        hour=history.of(key, at_s),
    )


class Week(Struct, frozen=True, kw_only=True):
    """What was promised over a week, by namespace, from a Prometheus."""

    until: datetime
    held: Mapping[str, HeldTime] = {}
    notes: tuple[str, ...] = ()
    """What of the week is not covered, or why nothing is known of it."""


class CardView(NamedTuple):
    node: NodeReport
    card: Card
    holders: Sequence[tuple[PodFact, Usage]]
    told: CardReport | None
    workloads: Sequence[Workload]

    @property
    def share_milli(self) -> int:
        return sum(usage.share_milli for _, usage in self.holders) or sum(each.share_milli for each in self.workloads)

    @property
    def promised_bytes(self) -> int:
        promised = sum(usage.memory_bytes for _, usage in self.holders)
        return promised or sum(each.memory_bytes for each in self.workloads)

    @property
    def used_bytes(self) -> int | None:
        """Used by all processes; None if the node's broker does not report it."""
        return None if self.told is None else self.told.used_bytes

    @property
    def got(self) -> float:
        """The part of its time that containers got over the last minute."""
        times = (each.held.time for each in self.workloads if each.held is not None)
        return sum(time.got.s60 for time in times if time is not None)


class Free(NamedTuple):
    """Free amounts of one card."""

    milli: int
    memory_bytes: int
    of_bytes: int

    def lacks(self, needs: Needs) -> tuple[int, int]:
        """How many milli and bytes are missing."""
        wanted = needs.memory_bytes
        memory = needs.share_milli * self.of_bytes // WHOLE_MILLI if wanted is None else wanted
        return max(0, needs.share_milli - self.milli), max(0, memory - self.memory_bytes)


@dataclass(frozen=True, eq=False)
class Facts:
    at: datetime
    is_cluster: bool = True
    pods: tuple[PodFact, ...] = ()
    nodes: Report = field(default_factory=Report)
    told: Mapping[str, NodeTold] = field(default_factory=dict[str, NodeTold])
    troubles: tuple[str, ...] = ()
    """Why this may be wrong or out of date, a sentence each."""
    doubts: tuple[str, ...] = ()
    """What is wrong with the schedulers, a sentence each."""
    week: Week | None = None
    """None if no Prometheus is set, or it has not been queried yet."""

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(sorted({each.namespace for each in self.pods} | {each.namespace for each in self.workloads}))

    @cached_property
    def oldest(self) -> datetime:
        """When the least recently queried broker was queried."""
        return min((each.at for each in self.told.values()), default=self.at)

    @cached_property
    def waiting(self) -> tuple[PodFact, ...]:
        """Longest wait first."""
        found = [each for each in self.pods if each.why]
        return tuple(sorted(found, key=lambda each: (each.since or self.at, each.namespace, each.name)))

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """Those that got less than they are due first, then by name."""
        told = [workload for each in self.told.values() for workload in each.workloads]
        known = {each.uid for each in told}
        rest = [workload for pod in self.pods if pod.uid not in known for workload in pod.workloads]
        return tuple(sorted([*told, *rest], key=_place))

    @cached_property
    def idle(self) -> tuple[Workload, ...]:
        """Held but unused resources, the most first: by the card's time, then by its memory."""
        found = [each for each in self.workloads if each.idle_milli or each.idle_bytes > each.memory_bytes // 2]
        return tuple(sorted(found, key=lambda each: (-each.idle_milli, -each.idle_bytes)))

    @cached_property
    def cards(self) -> tuple[tuple[NodeReport, Card], ...]:
        """By node, and by index on a node."""
        return tuple((node, card) for node in self.nodes.nodes for card in node.cards)

    def view(self, node: NodeReport, card: Card) -> CardView:
        place, told = (node.node, card.id), self.told.get(node.node)
        holders, workloads = self._holders.get(place, ()), self._by_card.get(place, ())
        return CardView(node, card, holders, None if told is None else told.cards.get(card.id), workloads)

    def index_of(self, workload: Workload) -> int | None:
        """The index of its card; None if neither its node's broker nor its inventory has it."""
        node = self._by_name.get(workload.node)
        cards = () if node is None or workload.index is not None else node.cards
        return next((card.index for card in cards if card.id == workload.card), workload.index)

    @cached_property
    def frees(self) -> tuple[Free, ...]:
        """Free amounts of allocatable cards, but for those that another card reaches in both: always few."""
        there = {
            _free(card, self._holders.get((node.node, card.id), ()))
            for node in self.nodes.nodes
            for card in (() if node.why else node.cards)
            if card.is_allocatable
        }
        found: list[Free] = []
        for free in sorted(there, reverse=True):
            if not found or free.memory_bytes > found[-1].memory_bytes:
                found.append(free)
        return tuple(found)

    @cached_property
    def _holders(self) -> Mapping[tuple[str, str], list[tuple[PodFact, Usage]]]:
        found: dict[tuple[str, str], list[tuple[PodFact, Usage]]] = {}
        for pod in self.pods:
            for usage in pod.usages:
                found.setdefault((pod.node, usage.card), []).append((pod, usage))
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, NodeReport]:
        return {node.node: node for node in self.nodes.nodes}

    @cached_property
    def _by_card(self) -> Mapping[tuple[str, str], list[Workload]]:
        found: dict[tuple[str, str], list[Workload]] = {}
        for each in self.workloads:
            found.setdefault((each.node, each.card), []).append(each)
        return found


def _place(each: Workload) -> tuple[float, str, str, str, str]:
    """Those that got less than they are due come first."""
    short_by = each.short_by if each.held is not None else 0.0
    return -short_by, each.namespace, each.pod, each.name, each.card


def _free(card: Card, holders: Sequence[tuple[PodFact, Usage]]) -> Free:
    if not holders:
        return Free(WHOLE_MILLI, card.memory_bytes, card.memory_bytes)
    left = card.capacity.left(together(usage.memory for _, usage in holders), movable=False)
    share_milli = sum(usage.share_milli for _, usage in holders)
    return Free(max(0, WHOLE_MILLI - share_milli), max(0, left), card.memory_bytes)
