"""Fixtures of the extender's tests: a core with some nodes, and requests as kube-scheduler sends them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from partage_plugins.api import NodeName, Ready
from partage_scheduler.core import Core, new_core, plugins
from partage_scheduler.extender.messages import Args
from partage_scheduler.objects import ApiLease, ApiPod
from support.gpu_fleet import card
from support.objects import lease_body, node, of_cards, pod, read
from support.scheduler_stage import CARDS, Running, settings_below

FOREIGN = "default-scheduler"


def a_core(root: Path, nodes: Iterable[str]) -> Core:
    """A core with nodes of two cards each, which send heartbeats."""
    found = new_core(settings_below(root), plugins())
    for name in nodes:
        add(found, name)
    return found


def add(core: Core, name: str, *, cards: int = CARDS, crishim: bool = True, beats: bool = True) -> None:
    ready = Ready(crishim=crishim, broker=True)
    inventory = of_cards([card(f"{name}-{place}") for place in range(cards)], ready=ready)
    core.event_handlers.nodes.changed(node(name, inventory, version=1))
    if beats:
        core.event_handlers.heartbeats.changed(read(ApiLease, **lease_body(name)))


def a_pod(name: str = "p", milli: int = 500, annotations: Mapping[str, str] | None = None, **spec: Any) -> ApiPod:
    spec.setdefault("schedulerName", FOREIGN)
    return pod(name, milli=milli, annotations=annotations, **spec)


def asking(pod: ApiPod, *names: str) -> Args:
    return Args(pod=pod, node_names=tuple(map(NodeName, names)))


def now() -> float:
    return time.monotonic()


class Caller:
    """An HTTP client that calls the extender as kube-scheduler does."""

    def __init__(self, session: aiohttp.ClientSession, url: str, running: Running) -> None:
        """`running` is the scheduler at `url`."""
        self._session, self._url, self.running = session, url, running

    async def ask(self, question: str, body: Any) -> tuple[int, Any]:
        async with self._session.post(f"{self._url}/{question}", data=msgspec.json.encode(body)) as answer:
            said = await answer.read()
            return answer.status, msgspec.json.decode(said) if answer.status == 200 else said.decode()

    async def filter(self, pod: Mapping[str, Any], *names: str) -> Any:
        return (await self.ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": names}))[1]

    async def prioritize(self, pod: Mapping[str, Any], *names: str) -> dict[str, int]:
        _, hosts = await self.ask("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": names})
        return {host["Host"]: host["Score"] for host in hosts}

    async def bind(self, pod: Mapping[str, Any], node: str) -> str:
        meta = pod["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        return str((await self.ask("bind", body))[1]["Error"])
