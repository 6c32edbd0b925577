"""The device filter: queries kubelet and the runtime only as far as a request requires, and lets `rules.guard` decide.

It applies to every container, including those with a grant.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from partage_base.cri import Changes, CreateRequest
from partage_base.inventory_file import InventoryFile
from partage_crishim.containerd import Containerd
from partage_crishim.kubelet import Kubelet
from partage_crishim.ledger import CardLedger
from partage_crishim.pid_namespace import PidNamespaceCheck
from partage_crishim.rules.device_plugin import require_unshared
from partage_crishim.rules.errors import CardsBesideUs, NodeNotReady
from partage_crishim.rules.guard import (
    GuardPolicy,
    NvidiaRequest,
    asked_by,
    guarded,
    native_cards,
    require_no_annotations,
)
from partage_plugins.api import CardId, GpuPart
from partage_plugins.api.nvidia import VISIBLE


@dataclass(frozen=True, kw_only=True)
class DeviceFilter:
    """Keeps cards from containers to which they were not granted."""

    policy: GuardPolicy
    inventory: InventoryFile
    containerd: Containerd
    kubelet: Kubelet
    ledger: CardLedger
    pid_namespace: PidNamespaceCheck

    async def is_on(self) -> bool:
        """Whether the filter is active; `auto` turns it off where cards, driver and NVIDIA's runtime are absent."""
        if self.policy.mode != "auto":
            return self.policy.mode == "on"
        return self.inventory.has_cards() or await self._has_nvidias()

    async def changes(self, request: CreateRequest, replaced: Container[str] = ()) -> Changes:
        """The changes to make to a request, mostly none; raises a refusal if changes are not enough.

        `replaced` are the variables that plugins set, which need no filtering.
        """
        known = self.inventory.current()
        part = known.gpu if known is not None else None
        is_guarded = request.namespace not in self.policy.trusted and await self.is_on()
        if is_guarded:
            require_no_annotations(request)
        await self.pid_namespace.require_no_part(request, part)
        if not is_guarded:
            return Changes()
        asked = asked_by(request, replaced)
        served = await self.kubelet.served(request) if _may_be_served(request, asked) else None
        await self._require_unshared(request, native_cards(request, served or frozenset(), part), part)
        adds_void = not asked.visible and VISIBLE not in replaced and await self._runs_nvidia(request)
        return guarded(asked, served, part, adds_void=adds_void)

    async def _require_unshared(self, request: CreateRequest, native: frozenset[CardId], part: GpuPart | None) -> None:
        if not native:
            return
        pod = f"{request.namespace}/{request.pod}"
        try:
            require_unshared(native, await self.ledger.held(fresh=False), part, pod=pod)
        except CardsBesideUs:  # the listing may be old: confirm with a fresh one
            require_unshared(native, await self.ledger.held(fresh=True), part, pod=pod)

    async def _has_nvidias(self) -> bool:
        """Whether any container of this node may run under NVIDIA's runtime; True if unknown."""
        try:
            return self.policy.may_run_nvidia(await self.containerd.config())
        except NodeNotReady:
            return True

    async def _runs_nvidia(self, request: CreateRequest) -> bool:
        """Whether NVIDIA's runtime will run this container; True if unknown."""
        try:
            handler = await self.containerd.handler(request.sandbox_id)
            return self.policy.runs_nvidia(handler, await self.containerd.config())
        except NodeNotReady:
            return True


def _may_be_served(request: CreateRequest, asked: NvidiaRequest) -> bool:
    return asked.names_cards or any(device.host_path.startswith("/dev/nvidia") for device in request.devices)
