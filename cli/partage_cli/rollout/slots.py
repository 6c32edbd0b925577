"""The slots of a roll-out, as Leases: who holds one may work, and renews it meanwhile.

Whether a holder is alive is judged by this process's clock alone: by how long its Lease has not changed here. The times
in a Lease are never compared with a clock, so nodes may disagree about the time. A Lease that is seen for the first
time counts as alive.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from partage_base.kube import (
    ApiServer,
    Conflict,
    Lease,
    LeaseSpec,
    Meta,
    NotFound,
    lease_path,
    leases_path,
    micro_time,
)

PREFIX: Final = "partage-rollout-"
LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": "partage-installer",
    "app.kubernetes.io/component": "rollout",
    "app.kubernetes.io/part-of": "partage",
}
_SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())
_NAME: Final = re.compile(rf"{PREFIX}([0-9]{{1,5}})", re.ASCII)
_AT_A_TIME: Final = 500


class Slots:
    def __init__(
        self, server: ApiServer, *, namespace: str, lease_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server, self._namespace, self._lease_s, self._clock = server, namespace, lease_s, clock
        self._seen: dict[int, tuple[Lease, float]] = {}
        """Each Lease, and since when it is as it is."""

    async def held(self) -> dict[int, str]:
        """Who holds each slot and is alive; raises `KubeError`, as all of these."""
        listing = await self._server.list(leases_path(self._namespace), Lease, labels=_SELECTOR, limit=_AT_A_TIME)
        found = {slot: lease for lease in listing.items if (slot := _slot_of(lease.metadata.name)) is not None}
        for slot in self._seen.keys() - found.keys():
            del self._seen[slot]
        for slot, lease in found.items():
            self._observe(slot, lease)
        return {slot: lease.spec.holder_identity for slot, (lease, _) in self._seen.items() if self._is_alive(slot)}

    async def is_held(self, slot: int) -> bool:
        """Whether somebody who is alive holds it."""
        try:
            self._observe(slot, await self._server.get(self._path(slot), Lease))
        except NotFound:
            self._seen.pop(slot, None)
        return self._is_alive(slot)

    async def take(self, slot: int, holder: str) -> bool:
        """Takes a slot that `held` has just shown as free, or `holder`'s; False where another one was quicker."""
        seen = self._seen.get(slot)
        try:
            if seen is None:
                new = self._new(slot, holder)
                self._observe(slot, await self._server.create(leases_path(self._namespace), new, Lease))
            else:
                await self._put(slot, seen[0], self._spec(seen[0].spec, holder))
        except (Conflict, NotFound):
            return False
        return True

    async def renew(self, slot: int, holder: str) -> bool:
        """False where `holder` has it no more."""
        lease = await self._mine(slot, holder)
        if lease is None:
            return False
        try:
            await self._put(slot, lease, self._spec(lease.spec, holder))
        except (Conflict, NotFound):
            self._seen.pop(slot, None)  # the next one asks
            return (await self._mine(slot, holder)) is not None
        return True

    async def give_back(self, slot: int, holder: str) -> None:
        """Does nothing where another one has it by now."""
        lease = await self._mine(slot, holder)
        if lease is None:
            return
        try:
            await self._put(slot, lease, self._spec(lease.spec, ""))
        except (Conflict, NotFound):
            self._seen.pop(slot, None)

    async def _mine(self, slot: int, holder: str) -> Lease | None:
        if slot not in self._seen:
            await self.is_held(slot)
        seen = self._seen.get(slot)
        return seen[0] if seen is not None and seen[0].spec.holder_identity == holder else None

    async def _put(self, slot: int, lease: Lease, spec: LeaseSpec) -> None:
        body = Lease(metadata=lease.metadata, spec=spec)
        self._observe(slot, await self._server.replace(self._path(slot), body, Lease))

    def _observe(self, slot: int, lease: Lease) -> None:
        seen = self._seen.get(slot)
        since = self._clock() if seen is None or seen[0].spec != lease.spec else seen[1]
        self._seen[slot] = lease, since

    def _is_alive(self, slot: int) -> bool:
        seen = self._seen.get(slot)
        if seen is None or not seen[0].spec.holder_identity:
            return False
        lasts_s = max(self._lease_s, float(seen[0].spec.lease_duration_seconds))
        return self._clock() - seen[1] < lasts_s

    def _new(self, slot: int, holder: str) -> Lease:
        meta = Meta(name=f"{PREFIX}{slot}", namespace=self._namespace, labels=LABELS)
        return Lease(metadata=meta, spec=self._spec(LeaseSpec(), holder))

    def _spec(self, old: LeaseSpec, holder: str) -> LeaseSpec:
        now = micro_time(datetime.now(UTC))
        same = old.holder_identity == holder
        return LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=max(1, round(self._lease_s)),
            acquire_time=old.acquire_time if same else now,
            renew_time=now,
            lease_transitions=old.lease_transitions + (not same),
        )

    def _path(self, slot: int) -> str:
        return lease_path(self._namespace, f"{PREFIX}{slot}")


def _slot_of(name: str) -> int | None:
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None
