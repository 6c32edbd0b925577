"""A whole scheduler and a fake API server in one loop: nodes with cards, pods, and checks of the final state."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.daemon.health import Health
from partage_base.daemon.life import Tasks
from partage_base.daemon.metrics import Metrics
from partage_base.keyring import KeyFolders, add_pair, load_public_keys
from partage_base.kube import ApiServer
from partage_plugins.api import GPU, Inventory, Reads
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.codecs import CRIT, decode_allocation, verify
from partage_scheduler.api.streams import patience
from partage_scheduler.assembly import Parts, assemble, signer_of
from partage_scheduler.core import plugins
from partage_scheduler.leader import Leader
from partage_scheduler.metrics import Figures
from partage_scheduler.settings import SchedulerSettings
from support.fake_api import FakeApi
from support.gpu_fleet import card
from support.kube import access_to
from support.objects import lease_body, node_body, of_cards, pod_body, written
from support.scheduling import PODS

NODES: Final = "/api/v1/nodes"
OURS: Final = "partage-system"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{OURS}/leases"
CARDS: Final = 2


def settings_below(root: Path, **more: Any) -> SchedulerSettings:
    """Settings of a scheduler with its own key and short backoff."""
    folders = KeyFolders.at_root(root)
    if not folders.private.exists():
        add_pair(folders, Ed25519PrivateKey.generate())
    return SchedulerSettings(root=root, back_off_s=0.05, most_back_off_s=0.2, **more)


def an_inventory(name: str, *, health: str = "ok") -> Inventory:
    """The node's inventory; `health` is that of its first card."""
    cards = tuple(card(f"{name}-{place}", health="ok" if place else health) for place in range(CARDS))
    return of_cards(cards, reads=Reads(crit=CRIT))


def inventory_text(name: str, *, health: str = "ok") -> str:
    return written(an_inventory(name, health=health))


def add_node(api: FakeApi, name: str, inventory: Inventory | None = None, **more: Any) -> None:
    """A node with a heartbeat; by default with two cards."""
    api.objects.create(NODES, node_body(name, inventory or an_inventory(name), **more))
    api.objects.create(LEASES, lease_body(name))


def add_pod(api: FakeApi, name: str, milli: int = 0, **more: Any) -> dict[str, Any]:
    return api.objects.create(PODS, pod_body(name, milli=milli, **more))


@dataclass
class Running:
    parts: Parts
    metrics: Metrics
    tasks: Tasks
    health: Health
    failures: list[Exception] = field(default_factory=list[Exception])


@asynccontextmanager
async def scheduler(
    api: FakeApi, settings: SchedulerSettings, *, deadline_s: float = 10.0, doubt_s: float = 0.5
) -> AsyncGenerator[Running]:
    """A scheduler that runs inside the context and is killed at its end, without a graceful stop."""
    failures: list[Exception] = []
    metrics = Metrics("scheduler")
    async with ApiServer(access_to(api.url), user_agent="test", deadline_s=deadline_s, connections=40) as server:
        parts = assemble(
            settings,
            server,
            signer=signer_of(settings),
            registry=plugins(),
            figures=Figures(metrics),
            doubt_s=doubt_s,
        )
        running = Running(parts, metrics, Tasks(failures.append), Health(), failures)
        leader = Leader(
            parts,
            server,
            namespace=settings.namespace,
            tasks=running.tasks,
            health=running.health,
            patience=lambda: patience(0.01, 0.05),
        )
        running.tasks.start(_for_ever(leader), name="leading")
        try:
            yield running
        finally:
            running.tasks.cancel()
            for task in parts.worker.tasks:
                task.cancel()
            await asyncio.wait(
                [task for task in asyncio.all_tasks() if task in parts.worker.tasks]
                or [asyncio.create_task(_nothing())]
            )
        assert not failures


async def _for_ever(leader: Leader) -> None:
    await leader.lead()
    await asyncio.Event().wait()


async def _nothing() -> None:
    pass


def unbound(api: FakeApi) -> list[str]:
    pods = api.objects.select(PODS, {"fieldSelector": "status.phase=Pending"})
    return [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]


class Truth:
    """Checks the whole history of the API server; `check` raises if anything was wrong."""

    def __init__(self, api: FakeApi, root: Path) -> None:
        self._changes, self._keys = api.objects.history, load_public_keys(KeyFolders.at_root(root).public).keys

    def check(self) -> Counter[str]:
        on: dict[str, str] = {}
        given: dict[str, dict[str, tuple[int, int]]] = {}
        gens: dict[str, int] = {}
        counts = Counter[str]()
        for change in self._changes:
            if not change.path.startswith(PODS):
                continue
            pod = change.object
            uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
            assert on.get(uid, node) == node or not on[uid], "a pod was bound twice"
            counts["bound"] += bool(node and not on.get(uid))
            is_over = change.kind == "DELETED" or pod["status"].get("phase") in {"Succeeded", "Failed"}
            if node:
                gen, granted = self._granted(pod)
                assert gen == gens.get(uid, gen) or gen == gens[uid] + 1, "an allocation was overtaken"
                gens[uid] = gen
                if not is_over and granted != given.get(uid):
                    given[uid] = granted
                    self._require_room(given)
            on[uid] = node
            if is_over:
                given.pop(uid, None)
        return counts

    def _granted(self, pod: Mapping[str, Any]) -> tuple[int, dict[str, tuple[int, int]]]:
        notes = pod["metadata"]["annotations"]
        verify(notes[ALLOCATION], notes[SIGNATURE], self._keys)
        allocation = decode_allocation(notes[ALLOCATION], [GPU])
        assert (allocation.pod, allocation.node) == (pod["metadata"]["uid"], pod["spec"]["nodeName"])
        grants = [grant for each in allocation.of(GPU).values() for grant in each]
        return allocation.gen, {str(grant.card): (grant.share_milli, grant.memory_bytes) for grant in grants}

    def _require_room(self, given: Mapping[str, Mapping[str, tuple[int, int]]]) -> None:
        shares, memory = Counter[str](), Counter[str]()
        for grants in given.values():
            for id_, (share, held) in grants.items():
                shares[id_] += share
                memory[id_] += held
        assert max(shares.values(), default=0) <= 1000, f"over-committed: {shares}"
        assert all(held <= card(id_).memory_bytes for id_, held in memory.items())
