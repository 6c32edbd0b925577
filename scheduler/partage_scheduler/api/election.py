"""Leader election by a Lease: the leader renews it in time or stops leading; the others wait until it expires.

Expiry is judged by the local clock alone: by how long the Lease has not changed here. A leader counts its time from
before it sent the renewal, and stops before others start. A lost lead can't be resumed, since others may have started:
the process ends, and its successor starts without state.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec.structs import replace

from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Conflict,
    KubeError,
    Lease,
    LeaseSpec,
    Meta,
    NotFound,
    lease_path,
    leases_path,
    micro_time,
)
from partage_scheduler.candidate import LeaseTerms
from partage_scheduler.errors import LeadLost

JITTER: Final = 0.2
_log = structlog.get_logger()


class Elector:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        namespace: str,
        name: str,
        identity: str,
        terms: LeaseTerms | None = None,
        annotations: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`identity` is unique to this process. `annotations` are on the Lease while this process holds it."""
        self._server, self._annotations = server, annotations or {}
        self._namespace, self._name, self._identity = namespace, name, identity
        self._terms = terms or LeaseTerms()
        self._clock, self._sleep = clock, sleep
        self._seen: Lease | None = None
        self._seen_at = float("-inf")
        self._renewed_at = float("-inf")
        self._gained, self._looked = asyncio.Event(), asyncio.Event()
        self._writing = asyncio.Lock()
        self._is_released = False
        self._repeats = Repeats(every_s=60)

    @property
    def leads(self) -> bool:
        """Whether this process may act now; to be checked before each act, since time passes between checks."""
        return self._clock() - self._renewed_at < self._terms.renew_s

    @property
    def leader(self) -> str:
        """The current leader as far as known; empty if there is none."""
        return (self._seen.spec.holder_identity if self._seen else None) or ""

    async def looked(self) -> None:
        """Returns once the leader is known."""
        await self._looked.wait()

    async def gained(self) -> None:
        await self._gained.wait()

    async def run(self) -> None:
        """Runs until the lead is lost, which raises `LeadLost`."""
        while not await self._tried():
            await self._sleep(self._terms.retry_s * (1 + JITTER * random.random()))  # noqa: S311
        self._gained.set()
        _log.info("became leader", lease=self._name, identity=self._identity)
        while self.leads:
            await self._sleep(self._terms.retry_s)
            await self._tried()
        if self._is_released:
            await asyncio.Event().wait()  # the release is about to end this process
        raise LeadLost(f"the lead was lost: lease {self._namespace}/{self._name} was not renewed in time; {self._now}")

    async def release(self) -> None:
        """Releases the Lease, so that the next leader need not wait."""
        self._is_released = True
        async with self._writing:
            if not self.leads or self._seen is None:
                return
            self._renewed_at = float("-inf")
            spec = replace(self._seen.spec, holder_identity="", lease_duration_seconds=1, renew_time=_now())
            try:
                await self._server.replace(self._path, replace(self._seen, spec=spec), Lease)
            except KubeError as error:
                _log.warning("lease not released; others wait until it expires", why=str(error))

    @property
    def _path(self) -> str:
        return lease_path(self._namespace, self._name)

    @property
    def _now(self) -> str:
        return f"{self.leader or 'no one'} holds it"

    async def _tried(self) -> bool:
        if self._is_released:
            return False
        async with self._writing:
            return await self._tried_alone()

    async def _tried_alone(self) -> bool:
        began_at = self._clock()
        try:
            async with asyncio.timeout(self._terms.renew_s / 2):  # leaves time to try again after one that hangs
                is_ours = await self._taken()
        except (KubeError, TimeoutError) as error:
            self._repeats.failed("the lease for the lead is not renewed; tried again", error)
            return False
        if is_ours:
            self._renewed_at = began_at
        return is_ours

    async def _taken(self) -> bool:
        if self._seen is not None and self.leads:  # our last write is still current: one call instead of two
            try:
                return await self._put(self._seen)
            except Conflict:
                pass
        try:
            found = await self._server.get(self._path, Lease)
        except NotFound:
            made = await self._server.create(leases_path(self._namespace), self._lease(None), Lease)
            self._observe(made)
            return True
        self._observe(found)
        if not self._is_free(found):
            self._renewed_at = float("-inf")  # even if time is left: another process leads
            return False
        return await self._put(found)

    async def _put(self, lease: Lease) -> bool:
        self._observe(await self._server.replace(self._path, self._lease(lease), Lease))
        return True

    def _observe(self, lease: Lease) -> None:
        if self._seen is None or self._seen.spec != lease.spec:
            self._seen_at = self._clock()
        self._seen = lease
        self._looked.set()

    def _is_free(self, lease: Lease) -> bool:
        """Held by nobody, by us, or expired by its own duration, which may differ from ours."""
        holder = lease.spec.holder_identity
        lasts_s = max(self._terms.lease_s, float(lease.spec.lease_duration_seconds))
        return not holder or holder == self._identity or self._clock() - self._seen_at >= lasts_s

    def _lease(self, old: Lease | None) -> Lease:
        is_ours = old is not None and old.spec.holder_identity == self._identity
        spec = LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=max(1, round(self._terms.lease_s)),
            acquire_time=old.spec.acquire_time if old is not None and is_ours else _now(),
            renew_time=_now(),
            lease_transitions=0 if old is None else old.spec.lease_transitions + (not is_ours),
        )
        meta = Meta(name=self._name, namespace=self._namespace) if old is None else old.metadata
        said = {**meta.annotations, **self._annotations}
        return Lease(metadata=replace(meta, annotations=said), spec=spec)


def _now() -> str:
    return micro_time(datetime.now(UTC))


async def until_stopped(leading: Coroutine[None, None, None], stopping: asyncio.Event) -> None:
    """Runs `leading`, and returns on a stop request, whether or not the lead was gained."""
    lead = asyncio.create_task(leading, name="leading")
    asked = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({lead, asked}, return_when=asyncio.FIRST_COMPLETED)
        if lead.done():
            lead.result()
        await stopping.wait()
    finally:
        asked.cancel()
        lead.cancel()
