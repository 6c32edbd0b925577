"""Drains pods with allocations or claims from a node by the Eviction API, which honours disruption budgets.

The node's own identity may do that: NodeRestriction lets kubelet evict the pods that are bound to it, and no others. It
may also patch annotations of its own Node, which removes the cards from the cluster when no advertiser reports that
they are paused: otherwise pods would come for as long as the last heartbeat counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from partage_base.claim_records import ClaimRecords
from partage_base.kube import (
    ApiServer,
    Conflict,
    KubeError,
    Meta,
    NotFound,
    Throttled,
    node_path,
    pods_path,
)
from partage_cli.installation.errors import PodsStay
from partage_plugins.api.keys import ALLOCATION, INVENTORY
from partage_plugins.errors import DecodeError

EVERY_S: Final = 1.0
_AGAIN_S: Final = 5.0
"""Delay after the API server refused an eviction."""
_QUIET_ROUNDS: Final = 3
"""Rounds without pods before the drain ends: one bound before the scheduler saw the pause shows up in one of them."""
_OVER: Final = frozenset(("Succeeded", "Failed"))
_FEW: Final = 5
Say = Callable[[str], None]


class ClaimName(NamedTuple):
    """A claim on this node's cards."""

    namespace: str
    name: str


class _PodClaim(msgspec.Struct, frozen=True, rename="camel"):
    resource_claim_name: str | None = None


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    resource_claim_statuses: tuple[_PodClaim, ...] = ()
    extended_resource_claim_status: _PodClaim = _PodClaim()
    """The claim of a pod that requests a device by an extended resource."""


class _ClaimsOfPod(msgspec.Struct, frozen=True, rename="camel"):
    resource_claims: tuple[_PodClaim, ...] = ()


class BoundPod(msgspec.Struct, frozen=True):
    """The fields of a pod that are needed here."""

    metadata: Meta
    spec: _ClaimsOfPod = _ClaimsOfPod()
    status: _PodStatus = _PodStatus()

    @property
    def name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def holds_cards(self, claims: Collection[ClaimName]) -> bool:
        """Whether it has an allocation, or one of these claims, its own or one made for it."""
        if self.status.phase in _OVER:
            return False
        status = self.status
        said = (*self.spec.resource_claims, *status.resource_claim_statuses, status.extended_resource_claim_status)
        names = (each.resource_claim_name for each in said)
        mine = (ClaimName(self.metadata.namespace, name) for name in names if name is not None)
        return ALLOCATION in self.metadata.annotations or any(each in claims for each in mine)


def prepared_claims(root: Path) -> frozenset[ClaimName]:
    """Claims that the DRA driver prepared; one whose record can't be read has no name, so its pods are not found."""
    records, found = ClaimRecords(root), set[ClaimName]()
    for uid in records.uids():
        with contextlib.suppress(DecodeError):
            if (record := records.of(uid)) is not None:
                found.add(ClaimName(record.claim.namespace, record.claim.name))
    return frozenset(found)


async def withdraw(server: ApiServer, node: str) -> None:
    """Removes the node's cards from the cluster, until an advertiser publishes them again; raises `KubeError`."""
    nothing = {"metadata": {"annotations": {INVENTORY: None}}}
    with contextlib.suppress(NotFound):  # the Node has left the cluster
        await server.patch(node_path(node), nothing, msgspec.Raw)


class Drain:
    def __init__(  # noqa: PLR0913  what it is given, by name
        self,
        server: ApiServer,
        node: str,
        *,
        say: Say,
        claims: Callable[[], Collection[ClaimName]] = frozenset,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`claims` returns those that are prepared on the node."""
        self._server, self._node, self._say, self._claims = server, node, say, claims
        self._clock, self._sleep = clock, sleep
        self._not_before: dict[str, float] = {}
        self._refusals: dict[str, str] = {}

    async def holders(self) -> tuple[BoundPod, ...]:
        """Pods on the node that hold cards; raises `KubeError`."""
        listing = await self._server.list(pods_path(), BoundPod, fields=f"spec.nodeName={self._node}", limit=500)
        if listing.undecodable:
            raise PodsStay(
                f"{len(listing.undecodable)} pods on {self._node} cannot be read, so it is not known who leaves"
            )
        claims = self._claims()
        return tuple(pod for pod in listing.items if pod.holds_cards(claims))

    async def run(self, within_s: float) -> None:
        """Returns when none is left; raises `PodsStay` with those that are, and why."""
        until, quiet = self._clock() + within_s, 0
        while quiet < _QUIET_ROUNDS:
            try:
                holders = await self.holders()
            except KubeError as error:
                if self._clock() >= until:
                    raise
                self._say(str(error))
                holders, quiet = (), -1
            quiet = 0 if holders else quiet + 1
            if holders and self._clock() >= until:
                raise PodsStay(_stay(holders, self._refusals, within_s))
            for pod in holders:
                if not pod.metadata.deletion_timestamp:
                    await self._evict(pod)
            await self._sleep(EVERY_S)

    async def _evict(self, pod: BoundPod) -> None:
        meta = pod.metadata
        if self._clock() < self._not_before.get(meta.uid, float("-inf")):
            return
        try:
            await self._server.evict(meta.namespace, meta.name, uid=meta.uid)
        except (NotFound, Conflict):  # gone, or another of that name: the next round sees it
            return
        except KubeError as error:
            self._refused(pod, error)
        else:
            self._say(f"{pod.name} is asked to leave")

    def _refused(self, pod: BoundPod, error: KubeError) -> None:
        self._not_before[pod.metadata.uid] = self._clock() + _AGAIN_S
        why = error.message if isinstance(error, Throttled) and error.message else str(error)
        if self._refusals.get(pod.name) != why:
            self._say(f"{pod.name} stays for now: {why}")
        self._refusals[pod.name] = why


def _stay(pods: Sequence[BoundPod], refusals: Mapping[str, str], within_s: float) -> str:
    shown = [f"{pod.name} ({refusals[pod.name]})" if pod.name in refusals else pod.name for pod in pods[:_FEW]]
    more = f" and {len(pods) - _FEW} more" if len(pods) > _FEW else ""
    return (
        f"after {within_s:g} s there are still pods with cards here: {', '.join(shown)}{more}; end them or make room "
        "for their budgets, and say it again. The cards stay paused until `partage node resume`"
    )
