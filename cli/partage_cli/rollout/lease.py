"""The Lease of a roll-out: its holder may work, and renews it meanwhile.

Whether the holder is alive is decided by this process's monotonic clock alone: by how long the Lease has not changed
here. The times in a Lease are never compared with a clock, so nodes may disagree about the time. A Lease that is seen
for the first time counts as alive.
"""

from __future__ import annotations

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

NAME: Final = "partage-rollout-0"
"""Older versions had several Leases, of which this was the first, so theirs and ours exclude each other."""
LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/name": "partage-installer",
    "app.kubernetes.io/component": "rollout",
    "app.kubernetes.io/part-of": "partage",
}


class RolloutLease:
    """The Lease in the API server; its calls raise `KubeError`."""

    def __init__(
        self, server: ApiServer, *, namespace: str, lease_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server, self._namespace, self._lease_s, self._clock = server, namespace, lease_s, clock
        self._seen: Lease | None = None
        self._since_s = 0.0
        """When its spec last changed here."""

    async def holder(self) -> str:
        """The holder, if it is alive; else empty."""
        written = await self._written()
        lasts_s = max(self._lease_s, float(written.lease_duration_seconds))
        return written.holder_identity if self._clock() - self._since_s < lasts_s else ""

    async def take(self, me: str) -> bool:
        """Takes a Lease that `holder` has just shown as free, or as `me`'s; returns False if another node was first."""
        return await self._write(me)

    async def renew(self, me: str) -> bool:
        """Returns False if `me` no longer holds it."""
        return (await self._written()).holder_identity == me and await self._write(me)

    async def give_back(self, me: str) -> None:
        """Does nothing if `me` does not hold it."""
        if (await self._written()).holder_identity == me:
            await self._write("")

    async def _written(self) -> LeaseSpec:
        try:
            self._observe(await self._server.get(lease_path(self._namespace, NAME), Lease))
        except NotFound:
            self._seen = None
        return LeaseSpec() if self._seen is None else self._seen.spec

    async def _write(self, holder: str) -> bool:
        """Returns False if it has changed since it was last read."""
        seen = self._seen or Lease(metadata=Meta(name=NAME, namespace=self._namespace, labels=LABELS))
        body = Lease(metadata=seen.metadata, spec=self._spec(seen.spec, holder))
        try:
            if self._seen is None:
                written = await self._server.create(leases_path(self._namespace), body, Lease)
            else:
                written = await self._server.replace(lease_path(self._namespace, NAME), body, Lease)
        except (Conflict, NotFound):
            return False
        self._observe(written)
        return True

    def _observe(self, lease: Lease) -> None:
        if self._seen is None or self._seen.spec != lease.spec:
            self._since_s = self._clock()
        self._seen = lease

    def _spec(self, old: LeaseSpec, holder: str) -> LeaseSpec:
        now = micro_time(datetime.now(UTC))
        is_same = old.holder_identity == holder
        return LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=max(1, round(self._lease_s)),
            acquire_time=old.acquire_time if is_same else now,
            renew_time=now,
            lease_transitions=old.lease_transitions + (not is_same),
        )
