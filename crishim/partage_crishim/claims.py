"""Admission of containers that use a claim of our DRA driver: checks at create that the claim's limits can hold.

A container without one of our CDI devices costs no read and no query.
"""

from __future__ import annotations

from dataclasses import dataclass

from partage_base.claim_records import ClaimRecords
from partage_base.cri import CreateRequest, CriError, RuntimeClient
from partage_base.inventory_file import InventoryFile
from partage_crishim.containerd import Containerd
from partage_crishim.rules.claimed import claims_in, require_prepared, the_claim
from partage_crishim.rules.confinement import (
    Confinement,
    is_able_to_enter,
    is_fractional,
    not_confinable,
    require_confinable,
)
from partage_crishim.rules.conversion import security_of
from partage_crishim.rules.errors import NodeNotReady, not_prepared
from partage_crishim.rules.placement import require_apart
from partage_plugins.api.claims import ClaimRecord, ClaimUid
from partage_plugins.errors import DecodeError


@dataclass(frozen=True, kw_only=True)
class ClaimGate:
    records: ClaimRecords
    inventory: InventoryFile
    containerd: Containerd
    runtime: RuntimeClient
    confinement: Confinement

    async def require(self, request: CreateRequest, *, is_granted: bool) -> None:
        """Refuse a container whose claim would not hold, or that could undo the claim of another container."""
        if request.target and is_able_to_enter(request) and not self.confinement.allow_unconfined:
            await self._require_no_claim(request.target)
        uid = the_claim(request, is_granted=is_granted)
        if uid is None:
            return
        record = self._record(uid)
        require_prepared(request, uid, record)
        known = self.inventory.current()
        part = known.gpu if known else None
        if record is None or not is_fractional(record.grants, part):
            return
        handler, config = await self.containerd.handler(request.sandbox_id), await self.containerd.config()
        security, default = security_of(request, handler), config.default_handler
        require_confinable(security, record.grants, part, self.confinement, default_handler=default)
        if request.pod_pid and not self.confinement.allow_unconfined:
            raise not_confinable("a container that shares its processes with the others of its pod")
        require_apart(request.mounts, record.places)

    def _record(self, uid: ClaimUid) -> ClaimRecord | None:
        try:
            return self.records.of(uid)
        except (DecodeError, OSError) as error:
            raise not_prepared(uid) from error

    async def _require_no_claim(self, container_id: str) -> None:
        """Refuse a container that could enter `container_id`, if that one has a claim."""
        try:
            devices = await self.runtime.cdi_devices(container_id) or ()
        except CriError as error:
            raise NodeNotReady(
                "partage: the container runtime does not say which devices the target of a debugging container has; "
                "kubelet tries again"
            ) from error
        if claims_in(devices):
            raise not_confinable("a privileged container beside one with a claim, whose processes it would see,")
