"""Writes pods' devices to their claims: the finalizer, then the allocation with the pod that it is reserved for.

Each write names the claim's resourceVersion, so it succeeds at most once even if it is not answered: it is retried
until it is done or refused with certainty. The API server's answers are passed on at once, before the watch.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from partage_base.kube import ApiServer, Backoff, Conflict, KubeError, NotFound, resource_claim_path
from partage_base.kube.errors import ServerFailed, StatusError, Throttled
from partage_scheduler.api.binder import Failed, Lost
from partage_scheduler.claims import FINALIZER, ClaimGrant, allocation_of
from partage_scheduler.objects import ApiPod, ApiResourceClaim
from partage_scheduler.objects.claims import Consumer

CONFLICTS: Final = 8
"""Conflicts in a row after which a write fails."""
FIRST_AGAIN_S: Final = 0.1
MOST_AGAIN_S: Final = 5.0

Known = Callable[[str, str], ApiResourceClaim | None]
"""The latest known state of a claim, by namespace and name."""


class ClaimWriter:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        known: Known,
        told: Callable[[ApiResourceClaim], None],
        may_write: Callable[[], bool],
        erred: Callable[[KubeError], None] = lambda _error: None,
        first_again_s: float = FIRST_AGAIN_S,
    ) -> None:
        """`told` is called with each claim that was read or written; `may_write`: this replica leads."""
        self._server, self._known, self._told = server, known, told
        self._may_write, self._erred, self._first_again_s = may_write, erred, first_again_s
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """Locks of claims, which are written by one task at a time."""

    async def write(self, pod: ApiPod, grants: Iterable[ClaimGrant]) -> Failed | Lost | None:
        """None once all are allocated and reserved for the pod."""
        for grant in grants:
            turn = self._turns.setdefault(grant.uid, asyncio.Lock())
            async with turn:
                failure = await self._written(pod, grant)
            if failure is not None:
                return failure
        return None

    async def let_go(self, claims: Iterable[ApiResourceClaim]) -> None:
        """Removes allocations that nobody uses; a claim that has changed meanwhile stays as it is."""
        for claim in claims:
            turn = self._turns.setdefault(claim.uid, asyncio.Lock())
            async with turn:
                if not self._may_write() or self._known(claim.namespace, claim.name) != claim:
                    continue
                try:
                    await self._patch(claim, {"status": {"allocation": None, "reservedFor": None}}, "/status")
                except KubeError as error:  # repeated when the pod is tried again
                    self._erred(error)

    async def _written(self, pod: ApiPod, grant: ClaimGrant) -> Failed | Lost | None:
        backoff = Backoff(first_s=self._first_again_s, most_s=MOST_AGAIN_S)
        allocation = allocation_of(grant, lambda: str(uuid.uuid4())) if grant.given else None
        conflicts = 0
        while self._may_write():
            claim = self._known(grant.namespace, grant.name)
            change = _change(claim, pod, grant, allocation)
            if claim is None or change is None or isinstance(change, Failed):
                return change if isinstance(change, Failed) else None
            try:
                if isinstance(change, _Finalizer):
                    await self._protect(claim)
                else:
                    await self._patch(claim, change, "/status")
            except NotFound:
                return Lost(f"its claim {grant.name} is gone")
            except Conflict as error:
                self._erred(error)
                conflicts += 1
                if conflicts == CONFLICTS:
                    return Failed(str(error), may_retry=True)
                await self._look(grant, backoff, error)
            except KubeError as error:
                self._erred(error)
                if isinstance(error, StatusError) and not isinstance(error, ServerFailed | Throttled):
                    return Failed(str(error), may_retry=True)
                await self._look(grant, backoff, error)
        return Failed("another scheduler leads now", may_retry=False)

    async def _look(self, grant: ClaimGrant, backoff: Backoff, error: KubeError) -> None:
        """Waits, then reads the claim to find out the outcome."""
        await asyncio.sleep(backoff.after(error))
        try:
            self._told(await self._server.get(resource_claim_path(grant.namespace, grant.name), ApiResourceClaim))
        except KubeError as again:  # the next write will tell
            self._erred(again)

    async def _protect(self, claim: ApiResourceClaim) -> None:
        """Adds the finalizer by merge patch, or another way if the claim has text that JSON does not preserve."""
        path = resource_claim_path(claim.namespace, claim.name)
        try:
            await self._patch(claim, {"metadata": {"finalizers": [*claim.metadata.finalizers, FINALIZER]}})
        except StatusError as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            self._told(await self._server.add_finalizer(path, FINALIZER, ApiResourceClaim))

    async def _patch(self, claim: ApiResourceClaim, body: Mapping[str, Any], part: str = "") -> None:
        meta = {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version, **body.get("metadata", {})}
        path = f"{resource_claim_path(claim.namespace, claim.name)}{part}"
        self._told(await self._server.patch(path, {**body, "metadata": meta}, ApiResourceClaim))


class _Finalizer:
    """The next write adds the finalizer."""


def _change(
    claim: ApiResourceClaim | None, pod: ApiPod, grant: ClaimGrant, allocation: Mapping[str, Any] | None
) -> Mapping[str, Any] | _Finalizer | Failed | None:
    """The next write; None if all are done."""
    if claim is None or claim.uid != grant.uid:
        return Failed(f"its claim {grant.name} is gone", may_retry=True)
    if claim.status.allocation is not None:
        if any(each.pool != grant.node for each in claim.results):
            return Failed(f"its claim {grant.name} was allocated elsewhere meanwhile", may_retry=True)
        return None if pod.uid in claim.consumers else {"status": _reserved(claim, pod)}
    if allocation is None:
        return Failed(f"its claim {grant.name} was let go of meanwhile", may_retry=True)
    if FINALIZER not in claim.metadata.finalizers:
        return _Finalizer()
    return {"status": {"allocation": allocation, **_reserved(claim, pod)}}


def _reserved(claim: ApiResourceClaim, pod: ApiPod) -> Mapping[str, Any]:
    consumers = (*claim.status.reserved_for, Consumer(resource="pods", name=pod.name, uid=pod.uid))
    return {"reservedFor": msgspec.to_builtins(consumers)}
