"""Prepares and releases this node's claims; both are idempotent, since kubelet may repeat a call.

A prepared claim has a record. While it exists, kubelet is answered from it without the API server: an allocation never
changes. Limits in the broker and then the CDI file are in place before the record is written. A released claim keeps
all three as long as a container may have it; ending it is retried at each `tidy`. Claims do not wait for each other: a
plugin that is slow with one does not delay others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

from partage_base.daemon.logs import Repeats
from partage_base.inventory_file import InventoryFile, NodeInventory
from partage_dra.claims import Claim, DeviceShare, shares_of
from partage_dra.holdings import Holdings
from partage_dra.parts import Cuts
from partage_dra.spec_file import SpecFiles
from partage_plugins.api.claims import ClaimDevice, ClaimRecord, ClaimRef, ClaimUid, claim_device, claim_key
from partage_plugins.api.containers import Adjustment, Container, Granted, Runtime
from partage_plugins.api.gpu import GPU, GpuGrant
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import ContainerName, NodeName, PodName, PodUid
from partage_plugins.api.pods import PodRef
from partage_plugins.errors import DecodeError, PartageError, Refused
from partage_plugins.host import PluginHost
from partage_plugins.rules.enforcement import Enforcement, require_enforced

_GEN: Final = 1
"""The generation of every claim: a different allocation is another claim, after the first has ended."""
_NAME: Final = ContainerName("claim")
_SAID_AGAIN_S: Final = 300.0
_NO_INVENTORY: Final = (
    "partage: this node's inventory is missing or cannot be read; is partage-advertiser running? kubelet tries again"
)
_log = structlog.get_logger()

ClaimLookup = Callable[[ClaimRef], Awaitable[Claim]]
"""Reads a claim from the API server; raises a `PartageError`."""


class Preparer:
    """Implements kubelet's calls; see `kubelet.services.Claims`."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        node: NodeName,
        *,
        holdings: Holdings,
        specs: SpecFiles,
        inventory: InventoryFile,
        host: PluginHost,
        claim: ClaimLookup,
        cuts: Cuts = Cuts(),  # noqa: B008  immutable
        enforcement: Enforcement = "strict",
    ) -> None:
        self._node, self._holdings, self._specs = node, holdings, specs
        self._inventory, self._host, self._claim = inventory, host, claim
        self._cuts = cuts
        self._enforcement: Enforcement = enforcement
        self._repeats = Repeats(every_s=_SAID_AGAIN_S)
        self._turns = WeakValueDictionary[ClaimUid, asyncio.Lock]()

    async def prepare(self, claim: ClaimRef) -> ClaimRecord:
        """Prepare a claim; expected errors are raised with a sentence for the pod's owner."""
        async with self._turn(claim.uid):
            known = self._known(claim.uid)
            if known is not None and not known.is_released and self._specs.has(claim.uid):
                return known
            return await self._prepared(claim, await self._claim(claim), known)

    async def release(self, claim: ClaimRef) -> None:
        """Release a claim; once this returns, kubelet need not repeat the call."""
        async with self._turn(claim.uid):
            known = self._known(claim.uid)
            if known is not None and not known.is_released:
                self._holdings.put(replace(known, is_released=True))
            try:
                await self._end(claim.uid)
            except PartageError:
                if known is None:
                    raise  # without a record of the release, kubelet has to repeat it
                _log.info("released claim is still in use", uid=claim.uid)

    async def tidy(self) -> None:
        """End released claims that are no longer in use."""
        for uid in self._holdings.uids:
            async with self._turn(uid):
                try:
                    known = self._holdings.record(uid)
                    if known is not None and known.is_released:
                        await self._end(uid)
                except (PartageError, OSError) as error:  # usually a container still has it
                    self._repeats.failed("a claim can't be ended yet", error, uid=uid)

    def take_over(self) -> None:
        """Delete CDI files of an earlier driver that have no claim record."""
        self._specs.keep_only(set(self._holdings.uids))

    def _turn(self, uid: ClaimUid) -> asyncio.Lock:
        """The claim's lock; it exists as long as it is in use."""
        return self._turns.setdefault(uid, asyncio.Lock())

    def _known(self, uid: ClaimUid) -> ClaimRecord | None:
        """The record, or None; an unreadable one is rebuilt when kubelet retries, since allocations never change."""
        try:
            return self._holdings.record(uid)
        except DecodeError as error:
            _log.warning("claim record is unreadable", uid=uid, why=str(error))
            return None

    async def _prepared(self, claim: ClaimRef, found: Claim, known: ClaimRecord | None) -> ClaimRecord:
        inventory = self._inventory.current()
        if inventory is None or inventory.gpu is None:
            raise Refused(_NO_INVENTORY)
        shares = shares_of(found, claim, inventory.gpu, self._node, self._cuts)
        grants = _grants(shares)
        devices = tuple(map(_device, shares))
        if known is not None and (known.devices, known.grants) != (devices, grants):
            raise Refused(
                f"partage: containers of this node still have claim {claim.name} as it was allocated before; "
                "kubelet tries again until they have ended"
            )
        with self._holdings.reserved(claim.uid, grants, inventory.gpu):
            adjustment = await self._attached(claim, inventory, grants, shares)
            cdi = (claim_device(claim.uid), *adjustment.cdi)
            record = ClaimRecord(claim=claim, devices=devices, grants=grants, cdi=cdi, places=adjustment.places)
            self._holdings.put(record)
        return record

    async def _attached(
        self, claim: ClaimRef, inventory: NodeInventory, grants: tuple[GpuGrant, ...], shares: tuple[DeviceShare, ...]
    ) -> Adjustment:
        """Put the limits in force through plugins, and write the rest of their answer into the claim's CDI file."""
        kind = GPU.name
        granted = Granted(
            gen=_GEN,
            grants={kind: grants or tuple(_whole(each) for each in shares)},
            parts={kind: inventory.parts[kind]},
        )
        adjusted = await self._host.adjust(_container(claim), granted)
        require_enforced(adjusted.unenforced, self._enforcement)
        self._specs.write(claim.uid, adjusted.adjustment)
        return adjusted.adjustment

    async def _end(self, uid: ClaimUid) -> None:
        await self._host.removed(claim_key(uid))
        self._specs.remove(uid)
        self._holdings.drop(uid)
        _log.info("claim ended", uid=uid)


def _grants(shares: tuple[DeviceShare, ...]) -> tuple[GpuGrant, ...]:
    """The claim's grants; none for a claim with `adminAccess`."""
    grants = tuple(each.grant for each in shares if each.grant is not None)
    if grants and len(grants) < len(shares):
        raise Refused(
            "partage: a claim has shares, or access of administrators, and not both; make it two claims of two pods"
        )
    return grants


def _whole(share: DeviceShare) -> GpuGrant:
    """The whole card, so that no limit has to be enforced."""
    card = share.card
    return GpuGrant(card=card.id, share_milli=WHOLE_MILLI, limit_milli=WHOLE_MILLI, memory_bytes=card.memory_bytes)


def _device(share: DeviceShare) -> ClaimDevice:
    return ClaimDevice(
        request=share.request, pool=share.pool, device=share.device, card=share.card.id, share_id=share.share_id
    )


def _container(claim: ClaimRef) -> Container:
    """Stands for any container with the claim: its runtime supports CDI, as kubelet attaches it by nothing else."""
    return Container(
        key=claim_key(claim.uid),
        pod=PodRef(namespace=claim.namespace, name=PodName(claim.name), uid=PodUid(claim.uid)),
        name=_NAME,
        runtime=Runtime(takes_cdi=True),
        is_claim=True,
    )
