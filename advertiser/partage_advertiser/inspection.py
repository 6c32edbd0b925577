"""Asks everybody what there is, and makes one inventory of it.

Plugins are asked in one thread of their own, one call at a time: the loop goes on while a driver takes its time. A call
that never ends is the watchdog's business, which ends the process by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from partage_advertiser.errors import NoInventory
from partage_advertiser.kubelet import Kubelet
from partage_advertiser.pods import Pods
from partage_advertiser.readiness import Readiness
from partage_plugins.errors import PartageError
from partage_plugins.sides.node import NodeSide
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.node import Gauge

T = TypeVar("T")


class Inspector:
    """One node's."""

    def __init__(self, side: NodeSide, kubelet: Kubelet, pods: Pods, readiness: Readiness) -> None:
        self._side = side
        self._kubelet = kubelet
        self._pods = pods
        self._readiness = readiness
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plugins")

    async def look(self, last: Inventory | None) -> Inventory:
        """What there is now; `NoInventory` where a plugin fails, since half an inventory would be a lie."""
        in_use = await self._kubelet.in_use()
        if in_use is not None:
            in_use = await self._pods.without_ended(in_use, last)
        try:
            parts = await self._asked(lambda: self._side.discover(in_use))
        except PartageError as error:
            raise NoInventory(f"what is on this node can't be said: {error}") from error
        return Inventory(ready=self._readiness.now(), kinds=parts)

    async def samples(self) -> list[Gauge]:
        """How the devices fare."""
        return await self._asked(self._side.samples)

    async def stop(self) -> list[PartageError]:
        """Plugins let go; what failed at it."""
        faults = await self._asked(self._side.stopping)
        self._thread.shutdown()
        return list(faults)

    async def _asked(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)
