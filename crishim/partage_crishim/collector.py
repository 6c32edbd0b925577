"""Notifies plugins of removed containers, at least once per container.

A container counts as removed after a failed create, and when the runtime no longer lists it. Every container that
plugins prepared something for is on record, so nothing is lost when this process ends. A call that fails is retried
later.

One pass queries the runtime twice and is cheap. It runs every `EVERY_S`, and soon after something failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from partage_base.event_wait import set_within
from partage_crishim.containerd import Containerd
from partage_crishim.ledger import CardLedger
from partage_crishim.records import Records
from partage_crishim.reservations import Reservations
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import gone
from partage_plugins.api import ContainerKey
from partage_plugins.errors import PartageError, PluginCrashed, PluginHung
from partage_plugins.host import PluginHost

EVERY_S: Final = 30.0
_SOONEST_S: Final = 1.0


class Collector:
    def __init__(  # noqa: PLR0913  those whom it asks and tells
        self,
        *,
        reservations: Reservations,
        records: Records,
        containerd: Containerd,
        ledger: CardLedger,
        host: PluginHost,
        tell: Callable[[PartageError | OSError], None],
    ) -> None:
        self._reservations = reservations
        self._records = records
        self._containerd = containerd
        self._ledger = ledger
        self._host = host
        self._tell = tell
        self._stubborn: set[ContainerKey] = set()

    async def run(self) -> None:
        """Run passes until cancelled."""
        while True:
            await set_within(self._reservations.clean_up, EVERY_S)
            self._reservations.clean_up.clear()
            try:
                await self.once()
            except (NodeNotReady, OSError) as error:
                self._tell(error)
            await asyncio.sleep(_SOONEST_S)

    async def once(self) -> None:
        """Run one pass; raises `NodeNotReady` if the runtime does not answer or the lock is not available."""
        await self._collect_containers()
        await self._collect_pods()

    async def _collect_containers(self) -> None:
        adjusted = self._records.adjusted()
        if not adjusted:
            return
        async with self._ledger.table(fresh=True) as (table, listing):
            keys = gone(adjusted, listing, table.reservations)
        # Keys that failed before come last, so that they do not delay others.
        for key in sorted(keys, key=self._stubborn.__contains__):
            if not await self._told(key):
                break
        self._stubborn.intersection_update(keys)

    async def _told(self, key: ContainerKey) -> bool:
        """Notify plugins that a container was removed; returns whether to continue with other containers."""
        async with self._ledger.alone_with(key):
            async with self._reservations.locked() as table:
                if any(each.held.key == key for each in table.reservations):
                    return True  # it is being created again
            try:
                await self._host.removed(key)
            except PartageError as fault:
                self._stubborn.add(key)
                self._tell(fault)
                return not isinstance(fault, PluginHung | PluginCrashed)
            self._records.removed(key)
        return True

    async def _collect_pods(self) -> None:
        known = self._records.pods()
        if not known:
            return
        alive = await self._containerd.pods()
        async with self._reservations.locked() as table:
            alive = alive.union(each.held.pod for each in table.reservations)
            for uid in known:
                if uid not in alive:
                    self._records.forget_pod(uid)
