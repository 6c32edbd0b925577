"""A node's plugins, with the answers that a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from partage_plugins.api import Container, ContainerKey, Granted, NodeName, PodUid
from partage_plugins.errors import Refused
from partage_plugins.framework.node import Adjusted
from partage_plugins.host import HostSettings, PluginHost


class FakeHost(PluginHost):
    def __init__(self, answer: Adjusted) -> None:
        super().__init__(HostSettings(node=NodeName("n1")))
        self.answer: Adjusted | Exception = answer
        self.asked: list[tuple[Container, Granted]] = []
        self.told: list[ContainerKey] = []
        self.prepared: set[ContainerKey] = set()
        """Containers that were adjusted and not removed since."""
        self.in_use: set[ContainerKey] = set()
        """Containers that can't be removed yet."""
        self.deaf: Exception | None = None
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self._held: dict[PodUid, asyncio.Event] = {}

    def hold(self, uid: str) -> asyncio.Event:
        """Let containers of this pod wait for the event."""
        return self._held.setdefault(PodUid(uid), asyncio.Event())

    async def adjust(self, container: Container, granted: Granted) -> Adjusted:
        self.asked.append((container, granted))
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            await self.meanwhile()
        if container.pod.uid in self._held:
            await self._held[container.pod.uid].wait()
        self.prepared.add(container.key)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def removed(self, key: ContainerKey) -> None:
        await asyncio.sleep(0)
        if self.deaf is not None:
            raise self.deaf
        self.told.append(key)
        if key in self.in_use:
            raise Refused("a container has it")
        self.prepared.discard(key)
