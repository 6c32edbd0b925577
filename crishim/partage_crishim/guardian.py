"""The guard at work: asks kubelet and the runtime only what a request makes necessary; `deciding.guarding` says."""

from __future__ import annotations

from partage_base.cri import Changes, CreateRequest
from partage_crishim.booking import Booking
from partage_crishim.containerd import Containerd
from partage_crishim.deciding.errors import CardsBesideUs, NodeNotReady
from partage_crishim.deciding.guarding import (
    GuardPolicy,
    guarded,
    names_cards,
    native_cards,
    require_no_annotations,
    require_unshared,
    says_nothing,
)
from partage_crishim.inventory_file import InventoryFile
from partage_crishim.kubelet import Kubelet
from partage_plugins.vocabulary import CardId, GpuPart


class Guardian:
    """Keeps cards from those who were not given any."""

    def __init__(
        self, policy: GuardPolicy, inventory: InventoryFile, containerd: Containerd, kubelet: Kubelet, booking: Booking
    ) -> None:
        self._policy = policy
        self._inventory = inventory
        self._containerd = containerd
        self._kubelet = kubelet
        self._booking = booking

    @property
    def is_on(self) -> bool:
        """Whether there is anything here to guard."""
        return self._policy.mode == "on" or (self._policy.mode == "auto" and self._inventory.has_cards())

    async def changes(self, request: CreateRequest) -> Changes:
        """What to change in a request; nothing for most. Raises a refusal for what can only be refused."""
        if not self.is_on or request.namespace in self._policy.trusted:
            return Changes()
        require_no_annotations(request)
        known = self._inventory.current()
        part = known.gpu if known is not None else None
        served = await self._kubelet.served(request) if _may_be_served(request) else None
        await self._require_unshared(native_cards(request, served or frozenset(), part), part)
        adds_void = says_nothing(request) and await self._runs_nvidia(request)
        return guarded(request, served, part, adds_void=adds_void)

    async def _require_unshared(self, native: frozenset[CardId], part: GpuPart | None) -> None:
        if not native:
            return
        try:
            require_unshared(native, await self._booking.held(fresh=False), part)
        except CardsBesideUs:  # as far as an old listing can say
            require_unshared(native, await self._booking.held(fresh=True), part)

    async def _runs_nvidia(self, request: CreateRequest) -> bool:
        """Whether NVIDIA's runtime will see this container; yes where nobody can tell."""
        if not self._policy.nvidia_handlers and not self._policy.nvidia_is_default:
            return False
        try:
            return self._policy.runs_nvidia(await self._containerd.handler(request.sandbox_id))
        except NodeNotReady:
            return True


def _may_be_served(request: CreateRequest) -> bool:
    return names_cards(request) or any(device.host_path.startswith("/dev/nvidia") for device in request.devices)
