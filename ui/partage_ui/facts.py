"""A snapshot of all known state, and what views derive from it, each computed once for all viewers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from partage_cli.nodes.reports import NodeReport, Report
from partage_cli.top.grantees import Grantee, grantees
from partage_cli.top.times import SHORT_BY
from partage_isolation.wire.messages import BrokerReport, CardHeld, CardReport
from partage_plugins.api import GPU, Card, CardId, GpuGrant
from partage_plugins.api.card_memory import together
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import budget_of, claim_of
from partage_plugins.api.usage import Usage
from partage_ui.history import History
from partage_ui.objects import Needs, PodFact


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


@dataclass(frozen=True, eq=False)
class Workload:
    """What a container, or a budget of several, holds of one card."""

    namespace: str
    pod: str
    name: str
    node: str
    card: str
    index: int | None
    share_milli: int
    limit_milli: int
    memory_bytes: int
    uid: str
    """The pod's uid."""
    held: CardHeld | None = None
    """None if its node's broker has not reported it."""
    hour: tuple[tuple[float, float] | None, ...] = ()
    is_whole: bool = False
    """Whether this is all that its container has: no other card, and no budget with others."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.pod}"

    @cached_property
    def short_by(self) -> float:
        """The part of the card's time that it wanted, is guaranteed and did not get in the last minute; 0 if none."""
        time = None if self.held is None else self.held.time
        if time is None:
            return 0.0
        lacks = min(self.share_milli / WHOLE_MILLI, time.wanted.s60) - time.got.s60
        return lacks if lacks > SHORT_BY else 0.0

    @cached_property
    def idle_milli(self) -> int:
        """The part of its share that it wanted in no known minute."""
        time = None if self.held is None else self.held.time
        if time is None:
            return 0
        wanted = max([time.wanted.s60, *(each[0] for each in self.hour if each is not None)])
        return max(0, self.share_milli - round(wanted * WHOLE_MILLI))

    @property
    def idle_bytes(self) -> int:
        """The part of its memory that it does not hold."""
        return 0 if self.held is None else max(0, self.held.limit_bytes - self.held.charged_bytes)


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
        rest = (pod for pod in self.pods if pod.allocation is not None and pod.uid not in known)
        found = [*told, *(self._untold(pod, *each) for pod in rest for each in _granted(pod))]
        return tuple(sorted(found, key=lambda each: (-each.short_by, each.namespace, each.pod, each.name, each.card)))

    @cached_property
    def idle(self) -> tuple[Workload, ...]:
        """Held but unused resources, the most first: by the card's time, then by its memory."""
        found = [each for each in self.workloads if each.idle_milli or each.idle_bytes > each.memory_bytes // 2]
        return tuple(sorted(found, key=lambda each: (-each.idle_milli, -each.idle_bytes)))

    @cached_property
    def cards(self) -> tuple[CardView, ...]:
        """By node, and by index on a node."""
        return tuple(card for node in self.nodes.nodes for card in self._cards_of(node))

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
    def _indices(self) -> Mapping[tuple[str, str], int]:
        return {(node.node, card.id): card.index for node in self.nodes.nodes for card in node.cards}

    @cached_property
    def _by_card(self) -> Mapping[tuple[str, str], list[Workload]]:
        found: dict[tuple[str, str], list[Workload]] = {}
        for each in self.workloads:
            found.setdefault((each.node, each.card), []).append(each)
        return found

    def _untold(self, pod: PodFact, name: str, grant: GpuGrant) -> Workload:
        return Workload(
            namespace=pod.namespace,
            pod=pod.name,
            name=name,
            node=pod.node,
            card=grant.card,
            index=self._indices.get((pod.node, grant.card)),
            share_milli=grant.share_milli,
            limit_milli=grant.limit_milli,
            memory_bytes=grant.memory_bytes,
            uid=pod.uid,
        )

    def _cards_of(self, node: NodeReport) -> Iterator[CardView]:
        found = self.told.get(node.node)
        told = {} if found is None else found.cards
        for card in node.cards:
            place = (node.node, card.id)
            holders, workloads = self._holders.get(place, ()), self._by_card.get(place, ())
            yield CardView(node, card, holders, told.get(card.id), workloads)


def _free(card: Card, holders: Sequence[tuple[PodFact, Usage]]) -> Free:
    if not holders:
        return Free(WHOLE_MILLI, card.memory_bytes, card.memory_bytes)
    left = card.capacity.left(together(usage.memory for _, usage in holders), movable=False)
    share_milli = sum(usage.share_milli for _, usage in holders)
    return Free(max(0, WHOLE_MILLI - share_milli), max(0, left), card.memory_bytes)


def _granted(pod: PodFact) -> Iterator[tuple[str, GpuGrant]]:
    for grantee, grants in () if pod.allocation is None else pod.allocation.of(GPU).items():
        for grant in grants:
            yield str(budget_of(grantee) or (claim_of(grantee) or [grantee])[0]), grant
