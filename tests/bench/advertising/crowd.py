"""Many advertisers in one process, each with a node, a token and connections of its own, before one real API server.

What they tell is made up; how they tell it is the daemon's own: annotation, heartbeat and events.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from partage_advertiser.events import Events
from partage_advertiser.happenings import Happening
from partage_advertiser.heartbeat import Heartbeat
from partage_advertiser.publisher import Publisher
from partage_base.kube import Access, ApiServer, Node, nodes_path
from partage_plugins.codecs import encode_inventory
from partage_plugins.vocabulary import GPU, Card, CardId, GpuPart, Inventory
from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from rig.client.manifests import a_node
from rig.client.resources import SERVICE_ACCOUNTS
from rig.control.plane import ControlPlane
from rig.identity.people import ADVERTISER, OUR_NAMESPACE
from rig.patience import Wait, in_vain
from support.kube import access_to

BEAT_S: Final = 10.0
_CARDS: Final = 8
_AT_ONCE: Final = 16
_TOKEN_LIFE_S: Final = 3600
_EVERY_S: Final = 0.1
_PATIENCE_S: Final = 180.0


@dataclass
class Member:
    name: str
    server: ApiServer
    happened: int = 0
    """So much people should have heard of, and so much was sent or given up."""
    heard: int = 0
    beaten_s: float = float("-inf")
    """When its Lease was renewed for the last time."""

    def __post_init__(self) -> None:
        self.events = Events(self.server, self.name, sent=self._sent)
        self.publisher = Publisher(self.server, self.name)
        self.heartbeat = Heartbeat(
            self.server,
            namespace=OUR_NAMESPACE,
            node=self.name,
            every_s=BEAT_S,
            node_uid=lambda: self.publisher.node_uid,
            beats=lambda: self.publisher.is_true,
            keys=lambda: (),
            beaten=self._beaten,
        )

    def runs(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """What must run for it to be at work."""
        return self.publisher.run(), self.heartbeat.run(), self.events.run()

    def tell(self, health: str) -> None:
        """Its first card is so from now on, and people hear of it."""
        self.happened += 1
        self.publisher.want(_inventory(self.name, health))
        self.events.tell(Happening("Warning", "CardDegraded", f"Card 0 of {self.name} is {health}."))

    def _sent(self, _: str) -> None:
        self.heard += 1

    def _beaten(self, outcome: str) -> None:
        if outcome == "done":
            self.beaten_s = time.monotonic()


class Crowd:
    def __init__(self, members: Sequence[Member], admin: ApiServer) -> None:
        self.members = members
        self._admin = admin

    def tell(self, health: str) -> None:
        for member in self.members:
            member.tell(health)

    async def told_s(self, since: float) -> float:
        return await self._all_s(since, lambda member: member.publisher.is_true)

    async def beaten_s(self, since: float) -> float:
        """Seconds until, besides, every Lease was renewed after that moment."""
        return await self._all_s(since, lambda member: member.publisher.is_true and member.beaten_s > since)

    async def heard_s(self, since: float) -> float:
        """Seconds until nothing is left to be told to people either."""
        return await self._all_s(since, lambda member: member.heard == member.happened)

    async def wrong(self, health: str) -> list[str]:
        """Nodes whose annotation says something else, as an admin sees it."""
        listing = await self._admin.list(nodes_path(), Node, limit=100)
        stands = {node.metadata.name: node.metadata.annotations.get(ANNOTATION) for node in listing.items}
        return [each.name for each in self.members if stands.get(each.name) != _inventory(each.name, health)]

    async def _all_s(self, since: float, is_done: Callable[[Member], bool]) -> float:
        wait = Wait()
        while late := [member.name for member in self.members if not is_done(member)]:
            if not wait.left_s():
                raise in_vain("all tell the truth", f"{len(late)} of {len(self.members)} do not", wait)
            await asyncio.sleep(_EVERY_S)
        return time.monotonic() - since


@asynccontextmanager
async def crowd(control: ControlPlane, count: int) -> AsyncGenerator[Crowd]:
    """So many, none of which has anything to tell yet."""
    tls = ssl.create_default_context(cafile=str(control.identities.ca))
    async with AsyncExitStack() as stack:
        access = Access.find(control.identities.kubeconfig(control.identities.admin, control.server))
        as_admin = ApiServer(access, user_agent="bench", connections=_AT_ONCE, deadline_s=_PATIENCE_S)
        admin = await stack.enter_async_context(as_admin)
        tokens = await asyncio.gather(*(_enrolled(admin, f"made-up-{number}") for number in range(count)))
        members: list[Member] = []
        for name, token in tokens:
            own = access_to(control.server, authorization=f"Bearer {token}", tls=tls)
            server = ApiServer(own, user_agent="partage-advertiser/bench")
            members.append(Member(name, await stack.enter_async_context(server)))
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(run) for member in members for run in member.runs()]
            yield Crowd(members, admin)
            for run in runs:
                run.cancel()


async def _enrolled(admin: ApiServer, name: str) -> tuple[str, str]:
    """A node without a machine, and a token that speaks for it alone."""
    node = await admin.create(nodes_path(), a_node(name), Node)
    bound = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
    request = {"spec": {"expirationSeconds": _TOKEN_LIFE_S, "boundObjectRef": bound}}
    path = SERVICE_ACCOUNTS.at(ADVERTISER.namespace, ADVERTISER.name, "token")
    return name, (await admin.create(path, request, dict[str, Any]))["status"]["token"]


def _inventory(node: str, health: str) -> str:
    cards = tuple(_card(node, index) for index in range(_CARDS))
    part = GpuPart(driver="580.95.05", cuda="13.0", cards=(replace(cards[0], health=health), *cards[1:]))
    return encode_inventory(Inventory(kinds={GPU.name: part})).decode()


def _card(node: str, index: int) -> Card:
    return Card(
        id=CardId(f"GPU-{node}-{index}"),
        index=index,
        model="NVIDIA H100 80GB HBM3",
        memory_bytes=85017493504,
        compute_capability="9.0",
        pci=f"0000:{0x18 + index:02x}:00.0",
        numa_node=index // 4,
        pool="shared",
    )
