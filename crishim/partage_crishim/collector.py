"""Tells plugins of containers that are gone, at least once each.

A container is gone after a failed create, and when the runtime no longer lists it. Every container that plugins
prepared something for is on record, so nothing is lost when this process ends. A call that fails is made again later.

One pass asks the runtime twice and is cheap. It comes every `EVERY_S`, and soon after something failed.
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
from partage_plugins.errors import PartageError, PluginCrashed, PluginHung
from partage_plugins.host import PluginHost
from partage_plugins.vocabulary import ContainerKey

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
        clean_up: asyncio.Event,
        tell: Callable[[PartageError | OSError], None],
    ) -> None:
        """`clean_up` says that something may be left: then the next pass comes soon."""
        self._reservations = reservations
        self._records = records
        self._containerd = containerd
        self._ledger = ledger
        self._host = host
        self._tell = tell
        self._clean_up = clean_up
        self._stubborn: set[ContainerKey] = set()

    async def run(self) -> None:
        """For ever; the caller cancels it."""
        while True:
            await set_within(self._clean_up, EVERY_S)
            self._clean_up.clear()
            try:
                await self.once()
            except (NodeNotReady, OSError) as error:
                self._tell(error)
            await asyncio.sleep(_SOONEST_S)

    async def once(self) -> None:
        """One pass; raises `NodeNotReady` where the runtime or the lock is away."""
        await self._collect_containers()
        await self._collect_pods()

    async def _collect_containers(self) -> None:
        adjusted = self._records.adjusted()
        if not adjusted:
            return
        listing = await self._containerd.listing(fresh=True)
        async with self._reservations.locked() as table:
            if listing.began_s < table.horizon_s:
                return  # another crishim was quicker; the next pass will do
            self._reservations.drop_over(table, listing)
            keys = gone(adjusted, listing, table.reservations)
        # Those that failed before come last, so that they hold up no others.
        for key in sorted(keys, key=self._stubborn.__contains__):
            if not await self._told(key):
                break
        self._stubborn.intersection_update(keys)

    async def _told(self, key: ContainerKey) -> bool:
        """Whether to go on with others."""
        async with self._ledger.alone_with(key):
            async with self._reservations.locked() as table:
                if any(each.held.key == key for each in table.reservations):
                    return True  # it is being made again
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
