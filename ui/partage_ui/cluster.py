"""The state of a cluster from its API server and brokers, kept current once for all viewers.

Pods and nodes are watched, heartbeats are listed, and brokers are queried through their nodes' advertisers, a few a
second, more often while somebody looks. The scheduler is not queried: the pod itself has the reason why it waits. A
week's figures are a Prometheus's, if one is set.
Snapshots take a bounded part of a processor: the next one waits four times as long as the last one and its views took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from msgspec import Struct, field

from partage_base.daemon.life import Tasks
from partage_base.kube import (
    NOT_ENDED,
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    KubeError,
    Lease,
    Listed,
    Lost,
    Seen,
    Undecodable,
    follow,
    leases_path,
    nodes_path,
    pod_page_path,
    pods_path,
)
from partage_cli.nodes.reports import NodeReport, Report, of_node, with_lease
from partage_cli.schedulers import known_schedulers
from partage_cli.top.nodes import PAGE, ask_broker
from partage_cli.usage.held import Window
from partage_cli.usage.sampled import PrometheusError, by_prometheus
from partage_plugins.api.keys import INVENTORY
from partage_plugins.errors import DecodeError
from partage_ui.asks import Asks
from partage_ui.board import Board
from partage_ui.facts import Facts, NodeTold, Week, node_told
from partage_ui.history import History
from partage_ui.objects import PodFact, SeenPod, fact_of

T = TypeVar("T")
LEASES_EVERY_S: Final = 20.0
WATCHED_EVERY_S: Final = 10.0
UNWATCHED_EVERY_S: Final = 60.0
"""The time that brokers' figures for a minute cover, so that the hour has no gaps."""
EVERY_S: Final = 1.0
WEEK: Final = timedelta(days=7)
WEEK_EVERY_S: Final = 600.0
_LATEST_S: Final = 15.0
_COST: Final = 4
"""Applied to the time of views too, so that all of it takes at most a fifth of a processor."""
_PAGE_SIZE: Final = 500
_NO_SCHEDULER: Final = "no scheduler says in namespace {} how it decides: does partage-scheduler run?"


class NodeNotes(Struct, frozen=True):
    inventory: str | None = field(name=INVENTORY, default=None)


class NodeMeta(Struct, frozen=True):
    name: str = ""
    annotations: NodeNotes = NodeNotes()


class SeenNode(Struct, frozen=True):
    metadata: NodeMeta = NodeMeta()


class _Nodes:
    """What each node advertises; each text of an inventory is parsed once."""

    def __init__(self) -> None:
        self.reports: dict[str, NodeReport] = {}
        self.faults: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def listed(self, nodes: Iterable[SeenNode], unread: Iterable[Undecodable]) -> None:
        known = {each.metadata.name: each for each in nodes}
        for name in self._texts.keys() - known.keys():
            self.gone(name)
        self.faults = {}
        self._texts.clear()
        for each in known.values():
            self.changed(each)
        for one in unread:
            self.unread(one)

    def changed(self, node: SeenNode) -> None:
        name, text = node.metadata.name, node.metadata.annotations.inventory
        if text is None:
            self.gone(name)
            return
        if self._texts.get(name) == text:
            return
        self.gone(name)
        self._texts[name] = text
        try:
            self.reports[name] = of_node(name, text, None)
        except DecodeError as error:
            self.faults[name] = str(error)

    def gone(self, name: str) -> None:
        for held in (self.reports, self.faults, self._texts):
            held.pop(name, None)

    def unread(self, which: Undecodable) -> None:
        self.gone(which.key[1])
        if not which.is_gone:
            self.faults[which.key[1]] = which.why


class _Pods:
    """Pods that wait for cards or hold some, and the advertisers, by node."""

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self.facts: dict[tuple[str, str], PodFact] = {}
        self._advertisers: dict[tuple[str, str], str] = {}

    def listed(self, pods: Iterable[SeenPod], _unread: Iterable[Undecodable]) -> None:
        self.facts.clear()
        self._advertisers.clear()
        for each in pods:
            self.changed(each)

    def changed(self, pod: SeenPod) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        self.gone(key)
        fact = fact_of(pod, self._scheduler)
        if fact is not None:
            self.facts[key] = fact
        if pod.is_advertiser:
            self._advertisers[key] = pod.spec.node_name

    def gone(self, key: tuple[str, str]) -> None:
        self.facts.pop(key, None)
        self._advertisers.pop(key, None)

    def advertisers(self, namespace: str) -> dict[str, str]:
        """The names of their pods, by node."""
        return {node: name for (where, name), node in self._advertisers.items() if where == namespace}


class ClusterReader:
    def __init__(  # noqa: PLR0913 - what is read, by name
        self, server: ApiServer, board: Board, *, namespace: str, scheduler: str, asks: bool, prometheus: str = ""
    ) -> None:
        """`asks`: whether to query brokers; without it the page knows only what was promised."""
        self._server, self._board, self._namespace, self._asks = server, board, namespace, asks
        self._prometheus = prometheus
        self._week: Week | None = None
        self._nodes, self._pods = _Nodes(), _Pods(scheduler)
        self._leases: dict[str, Lease] = {}
        self._told: dict[str, NodeTold] = {}
        self._due = Asks()
        self.history = History()
        self._lost: dict[str, str] = dict.fromkeys(("pods", "nodes", "heartbeats"), "not read yet")
        self._changed = asyncio.Event()

    @property
    def lost(self) -> dict[str, str]:
        """What is unknown or out of date, and why."""
        return self._lost

    def start(self, tasks: Tasks) -> None:
        tasks.start(self._follow_pods(), name="pods")
        tasks.start(self._follow_nodes(), name="nodes")
        tasks.start(self._list_leases(), name="heartbeats")
        tasks.start(self._publish(), name="publishing")
        if self._asks:
            tasks.start(self._ask_brokers(), name="brokers")
        if self._prometheus:
            tasks.start(self._ask_prometheus(), name="week")

    async def _follow_pods(self) -> None:
        seen = follow(self._server, pods_path(), SeenPod, fields=NOT_ENDED, backoff=_backoff())
        await self._take("pods", seen, self._pods.listed, self._pods.changed, self._pods.gone)

    async def _follow_nodes(self) -> None:
        def gone(key: tuple[str, str]) -> None:
            self._nodes.gone(key[1])

        seen = follow(self._server, nodes_path(), SeenNode, backoff=_backoff())
        await self._take("nodes", seen, self._nodes.listed, self._nodes.changed, gone, self._nodes.unread)

    async def _take(  # noqa: PLR0913, PLR0917 - one for each thing that can be told
        self,
        name: str,
        seen: AsyncGenerator[Seen[T]],
        listed: Callable[[Iterable[T], Iterable[Undecodable]], None],
        changed: Callable[[T], None],
        gone: Callable[[tuple[str, str]], None],
        unread: Callable[[Undecodable], None] | None = None,
    ) -> None:
        async with aclosing(seen) as events:
            async for event in events:
                match event:
                    case Listed(items, left_out):
                        listed(items, left_out)
                        self._lost.pop(name, None)
                    case Changed(item=item):
                        changed(item)
                    case Deleted(key=key):
                        gone(key)
                    case Undecodable():
                        (unread or _forgets(gone))(event)
                    case Lost(error):
                        self._lost[name] = str(error)
                self._changed.set()

    async def _list_leases(self) -> None:
        while True:
            try:
                listed = await self._server.list(leases_path(self._namespace), Lease, limit=_PAGE_SIZE)
                self._leases = {each.metadata.name: each for each in listed.items}
                self._lost.pop("heartbeats", None)
            except KubeError as error:
                self._lost["heartbeats"] = str(error)
            self._changed.set()
            await asyncio.sleep(LEASES_EVERY_S)

    async def _ask_brokers(self) -> None:
        while True:
            pods = self._pods.advertisers(self._namespace)
            every_s = WATCHED_EVERY_S if self._board.is_watched else UNWATCHED_EVERY_S
            due = self._due.due(pods, time.monotonic(), every_s=every_s)
            await asyncio.gather(*(self._ask(node, pods[node]) for node in due))
            if due:
                self._changed.set()
            await asyncio.sleep(EVERY_S)

    async def _ask(self, node: str, pod: str) -> None:
        answer = await ask_broker(self._server, pod_page_path(self._namespace, pod, PAGE))
        if isinstance(answer, str):
            self._told[node] = NodeTold(at=datetime.now(UTC), why=answer)
        else:
            self._told[node] = node_told(node, answer, self.history, datetime.now(UTC))

    async def _ask_prometheus(self) -> None:
        while True:
            window = Window((now := datetime.now(UTC)) - WEEK, now)
            try:
                found = await by_prometheus(self._prometheus, window, pods=False)
                self._week = Week(
                    until=now, held={each.namespace: each for each in found.namespaces}, notes=found.notes
                )
            except PrometheusError as error:
                self._week = Week(until=now, notes=(f"Prometheus at {error.where}: {error.why}",))
            self._changed.set()
            await asyncio.sleep(WEEK_EVERY_S)

    async def _publish(self) -> None:
        while True:
            await self._changed_or_late()
            began = time.perf_counter()
            facts = self._facts()
            self._board.put(facts)
            await asyncio.sleep(max(EVERY_S, _COST * (time.perf_counter() - began + self._board.take_spent())))

    async def _changed_or_late(self) -> None:
        """Also returns after a while without a change, so that outdated facts are shown as such."""
        try:
            async with asyncio.timeout(_LATEST_S):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    def _facts(self) -> Facts:
        now = datetime.now(UTC)
        reports = [each for _, each in sorted(self._nodes.reports.items())]
        if "heartbeats" not in self._lost:  # otherwise no node is reported silent
            reports = [with_lease(each, self._leases.get(each.node), now) for each in reports]
        self._told = {node: each for node, each in self._told.items() if node in self._nodes.reports}
        troubles = [f"{name} are not known for sure: {why}" for name, why in self._lost.items()]
        return Facts(
            at=now,
            pods=tuple(self._pods.facts.values()),
            nodes=Report(nodes=tuple(reports), faults=dict(self._nodes.faults)),
            told=self._told,
            troubles=tuple(troubles),
            doubts=() if "heartbeats" in self._lost else self._doubts(),
            week=self._week,
        )

    def _doubts(self) -> tuple[str, ...]:
        found = known_schedulers(self._leases.values())
        if not found:
            return (_NO_SCHEDULER.format(self._namespace),)
        return tuple(each for one in found for each in one.notes)


def _forgets(gone: Callable[[tuple[str, str]], None]) -> Callable[[Undecodable], None]:
    """Shows nothing of a pod that can't be read."""

    def forget(which: Undecodable) -> None:
        gone(which.key)

    return forget


def _backoff() -> Backoff:
    return Backoff(first_s=0.5, most_s=15.0)


def nothing_known() -> Facts:
    return Facts(at=datetime.now(UTC), troubles=("nothing is read yet",))
