"""Reserves granted cards so that nothing is given out twice, using the runtime's list, reservations and one lock.

Most creates need no query to the runtime: a listing that is still valid suffices to accept. Only a fresh listing may
refuse.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final

from partage_crishim.containerd import Containerd
from partage_crishim.decisions import Ended
from partage_crishim.records import Records
from partage_crishim.reservations import Reservations, ReservationStore
from partage_crishim.rules.allocation import require_not_older
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_crishim.rules.holdings import (
    Holding,
    Listing,
    Reservation,
    highest_gen,
    holders,
    holders_of,
    require_room,
)
from partage_crishim.rules.regrants import Regrants, as_counted, in_force, regrant_of
from partage_plugins.api import Allocation, ContainerKey, GpuPart

_TRIES: Final = 5
"""For when another crishim keeps moving the watermark past our listings."""


class CardLedger:
    def __init__(self, reservations: Reservations, records: Records, containerd: Containerd) -> None:
        self._reservations = reservations
        self._records = records
        self._containerd = containerd
        self._keys: dict[ContainerKey, tuple[asyncio.Lock, int]] = {}
        self._spoken: Listing | None = None

    async def reserve(self, mine: Holding, part: GpuPart | None) -> Ended:
        """Reserve the grants; returns the callback for the create's end. Raises a refusal if they do not fit."""
        async with self.alone_with(mine.key):
            try:
                async with self.table(fresh=False) as (table, listing):
                    return self._reserved(table, listing, mine, part)
            except NoRoom:  # the listing may be old: confirm with a fresh one
                async with self.table(fresh=True) as (table, listing):
                    return self._reserved(table, listing, mine, part)

    async def held(self, *, fresh: bool) -> tuple[Holding, ...]:
        """What containers hold now, or held at the last listing if that is unknown."""
        try:
            async with self.table(fresh=fresh) as (table, listing):
                return holders(*as_counted(listing, table.reservations, self._records.regrants()))
        except NodeNotReady:
            async with self._reservations.locked() as table:
                last, made = as_counted(self._containerd.last(), table.reservations, self._records.regrants())
                living = [each.held for each in last.containers if each.held and not each.exited]
                return (*living, *(each.held for each in made))

    async def regrant(self, allocation: Allocation, part: GpuPart | None) -> Sequence[Holding]:
        """Count a newer allocation of a pod, and return those of its containers in which it is not in force yet.

        Raises a refusal if it is older than one seen before, or if other containers hold what it gives.
        """
        starts_nothing, uid = allocation.suspended is not None, allocation.pod
        async with self.table(fresh=False) as (table, listing):
            floor = self._records.floor(uid)
            if starts_nothing:
                require_not_older(allocation.gen, floor)
            is_closed = not starts_nothing or floor == allocation.gen
            if is_closed and not _without(allocation, listing, table.reservations, self._records.regrants()):
                return ()
        async with self.table(fresh=True) as (table, listing):
            known = self._records.regrants()
            if starts_nothing:  # also nothing from an older allocation, if the pod has no container now
                require_not_older(allocation.gen, self._records.floor(uid))
                self._records.raise_floor(uid, allocation.gen)
            mine = _without(allocation, listing, table.reservations, known)
            newest = known.get(allocation.pod)
            if mine and (newest is None or newest.gen != allocation.gen):
                require_not_older(allocation.gen, self._records.floor(allocation.pod))
                regrant = regrant_of(allocation, mine, known)
                counting = as_counted(listing, table.reservations, {**known, allocation.pod: regrant})
                for each in holders(*counting):
                    if each.pod == allocation.pod:
                        require_room(each, holders(*counting), part)
                self._records.regrant(allocation.pod, regrant)
            return mine

    def suspends(self, allocation: Allocation) -> bool | None:
        """Whether this allocation, which is counted, suspends its pod (True) or resumes it (False)."""
        known = self._records.regrants().get(allocation.pod)
        return None if known is None or known.gen != allocation.gen else known.suspended

    async def regranted(self, allocation: Allocation, held: Holding) -> None:
        """Record that the allocation is in force in this container."""
        async with self._reservations.locked():
            known = self._records.regrants().get(allocation.pod)
            if known is not None and known.gen == allocation.gen and held.key not in known.keys:
                self._records.regrant(allocation.pod, in_force(known, allocation, held))

    @contextlib.asynccontextmanager
    async def alone_with(self, key: ContainerKey) -> AsyncGenerator[None, None]:
        """Exclude other tasks of this process from reserving or cleaning up this container."""
        lock, users = self._keys.get(key) or (asyncio.Lock(), 0)
        self._keys[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._keys.pop(key)
            if users > 1:
                self._keys[key] = (lock, users - 1)

    @contextlib.asynccontextmanager
    async def table(self, *, fresh: bool) -> AsyncGenerator[tuple[ReservationStore, Listing], None]:
        """The locked reservations with a listing that misses none of those that were dropped."""
        for again in range(_TRIES):
            listing = await self._containerd.listing(fresh=fresh or again > 0)
            async with self._reservations.locked() as table:
                if listing.began_s >= table.watermark_s:
                    if listing is not self._spoken:  # each listing needs to be applied only once
                        self._reservations.drop_over(table, listing)
                        self._spoken = listing
                    yield table, listing
                    return
        raise NodeNotReady("partage: another crishim on this node is busy with its cards; kubelet tries again")

    def _reserved(self, table: ReservationStore, listing: Listing, mine: Holding, part: GpuPart | None) -> Ended:
        """Reserve, or refuse if the allocation is older than one that was in force, or the cards have no room."""
        listing, reservations = as_counted(listing, table.reservations, self._records.regrants())
        floor = self._records.floor(mine.pod)
        require_not_older(mine.gen, max(floor, highest_gen(mine.pod, listing, reservations)))
        cards = {grant.card for grant in mine.cards}
        require_room(mine, holders_of(cards, listing, reservations), part)
        self._records.adjusting(mine.key)
        reservation = self._reservations.made(mine)
        if mine.gen > floor:
            self._records.raise_floor(mine.pod, mine.gen)
        table.write(reservation)
        return partial(self._reservations.ended, reservation)


def _without(
    allocation: Allocation, listing: Listing, reservations: tuple[Reservation, ...], known: Regrants
) -> tuple[Holding, ...]:
    """Containers of the pod that were made from an older allocation, and in which this one is not in force."""
    newest = known.get(allocation.pod)
    done = newest.keys if newest is not None and newest.gen == allocation.gen else ()
    mine = (each for each in holders(listing, reservations) if each.pod == allocation.pod)
    return tuple(each for each in mine if each.gen < allocation.gen and each.key not in done)
