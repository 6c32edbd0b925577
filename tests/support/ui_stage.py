"""A cluster in a fake API server, as the page reads it, and users with tokens and rights."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from partage_base.daemon.life import Tasks
from partage_base.kube import ApiServer
from partage_isolation.wire.messages import BrokerReport, CardHeld, CardReport, ContainerReport, answer_line
from partage_plugins.api import Card, GpuGrant, Ready, keys
from partage_plugins.codecs import encode_allocation
from partage_ui.board import Board
from partage_ui.cluster import ClusterReader, nothing_known
from partage_ui.history import History
from partage_ui.reviews import ClusterDoor
from partage_ui.service import opened
from partage_ui.site import Site
from support import broker
from support.fake_answers import Object
from support.fake_api import Asked, FakeApi
from support.gpu_fleet import card
from support.kube import access_to
from support.objects import READY, advertiser_body, allocation, lease_body, node_body, of_cards, pod_body

OURS: Final = "partage-system"
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/{}/pods"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{OURS}/leases"
GIB: Final = 1 << 30
SENTENCE: Final = "0/2 nodes are available: 2 Insufficient GPU share."


@dataclass
class People:
    """Users by token, and the namespaces whose pods each may list: `*` is all, including nodes."""

    of_token: dict[str, str] = field(default_factory=dict[str, str])
    may: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def add(self, token: str, name: str, *namespaces: str) -> None:
        self.of_token[token], self.may[name] = name, set(namespaces)


class UiApi(FakeApi):
    """Answers TokenReviews and SubjectAccessReviews, and proxies fake brokers' reports."""

    def __init__(self) -> None:
        super().__init__()
        self.people = People()
        self.tells: dict[str, BrokerReport] = {}

    def _done(self, asked: Asked) -> Object:
        name = asked.path.rpartition("/")[2]
        if name == "tokenreviews":
            user = self.people.of_token.get(json.loads(asked.body)["spec"]["token"])
            return {"status": {"authenticated": bool(user), "user": {"username": user or "", "groups": ["g"]}}}
        if name == "subjectaccessreviews":
            return {"status": {"allowed": self._allows(json.loads(asked.body)["spec"])}}
        if asked.path.endswith("/proxy/broker"):
            told: Object = json.loads(answer_line(self.tells[asked.path.split("/")[-3].removeprefix("advertiser-")]))
            return told
        return super()._done(asked)

    def _allows(self, spec: Mapping[str, Any]) -> bool:
        wanted, granted = spec["resourceAttributes"], self.people.may.get(spec["user"], set())
        assert wanted["verb"] == "list"
        return "*" in granted or (wanted["resource"] == "pods" and wanted.get("namespace") in granted)

    def add_node(self, name: str, *cards: Card, ready: Ready | None = None, beats: bool = True) -> None:
        self.objects.create(NODES, node_body(name, of_cards(cards, ready=ready or READY)))
        self.objects.create(PODS.format(OURS), advertiser_body(name))
        if beats:
            self.objects.create(LEASES, lease_body(name, lasts_s=3600))

    def add_waiting(
        self, namespace: str, name: str, *, why: str = SENTENCE, milli: int = 500, minutes: int = 12
    ) -> None:
        at = f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        told = {"type": "PodScheduled", "status": "False", "message": why, "lastTransitionTime": at}
        status = {"conditions": [told] if why else []}
        pod = pod_body(name, namespace=namespace, milli=milli, limits={keys.GPU_MEMORY: "30Gi"}, status=status)
        pod["metadata"]["creationTimestamp"] = at
        self.objects.create(PODS.format(namespace), pod)

    def add_running(self, namespace: str, name: str, node: str, *grants: GpuGrant) -> None:
        uid = broker.pod(name, namespace).uid
        notes = {keys.ALLOCATION: encode_allocation(allocation(uid, node, *grants))}
        pod = pod_body(name, namespace=namespace, uid=uid, node=node, annotations=notes)
        self.objects.create(PODS.format(namespace), pod)


def a_card(index: int, *, node: str = "n1", health: str = "ok", why: str | None = None) -> Card:
    name, model = f"GPU-{node}-{index}aaaaaaaa", "NVIDIA H100 80GB HBM3"
    return card(name, gib=79, index=index, model=model, health=health, lost_because=why)


def a_grant(card: Card, *, milli: int = 500, limit: int = 1000, gib: int = 8) -> GpuGrant:
    return GpuGrant(card=card.id, share_milli=milli, limit_milli=limit, memory_bytes=gib * GIB)


def held(grant: GpuGrant, *, wanted: float = 0.5, got: float = 0.5, gib: float = 5, refused: int = 0) -> CardHeld:
    """A broker's report on this grant."""
    time = broker.time_told(wanted, got)
    return CardHeld(
        card=grant.card,
        granted_bytes=grant.memory_bytes,
        limit_bytes=grant.memory_bytes,
        charged_bytes=int(gib * GIB),
        used_bytes=int(gib * GIB),
        refused=refused,
        share_milli=grant.share_milli,
        limit_milli=grant.limit_milli,
        granted_share_milli=grant.share_milli,
        granted_limit_milli=grant.limit_milli,
        time=time,
    )


def told_of(cards: tuple[Card, ...], *containers: ContainerReport, findings: tuple[str, ...] = ()) -> BrokerReport:
    """The report of the broker of a node with these cards."""
    charged = [one for each in containers for one in each.cards]
    used = {card.id: sum(one.charged_bytes for one in charged if one.card == card.id) for card in cards}
    tell = tuple(
        CardReport(card=each.id, index=each.index, memory_bytes=each.memory_bytes, used_bytes=used[each.id])
        for each in cards
    )
    return BrokerReport(broker="0.1.0", cards=tell, containers=containers, findings=findings)


@asynccontextmanager
async def serving(  # noqa: PLR0913 - what it is given, by name
    api: FakeApi,
    *,
    asks: bool = True,
    reads: bool = True,
    tls: ssl.SSLContext | None = None,
    began: Callable[[History], None] = lambda _history: None,
    prometheus: str = "",
) -> AsyncGenerator[Site]:
    """The page of this cluster on a free port. `began` fills its history."""
    failed: list[Exception] = []
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(access_to(api.url), user_agent="test", connections=16))
        board = Board(nothing_known())
        reader = ClusterReader(
            server, board, namespace=OURS, scheduler="partage-scheduler", asks=asks, prometheus=prometheus
        )
        began(reader.history)
        tasks = Tasks(failed.append)
        site = await opened(
            board, ClusterDoor(server), "127.0.0.1:0", stack, tls=tls, secure=tls is not None, session_s=3600
        )
        if reads:
            reader.start(tasks)
        yield site
        ended = tasks.cancel()
        if ended:
            await asyncio.wait(ended)
    assert not failed
