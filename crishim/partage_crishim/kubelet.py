"""What kubelet gave a container by itself: its PodResources service, and its device manager's own record.

PodResources leaves out init containers that end before the others start; the device manager writes those down too, when
it allocates and so before their create, in a file that only root reads. It is looked at for them alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from partage_base.cri import CreateRequest, CriError, PodResources
from partage_crishim.deciding.guarding import card_ids
from partage_plugins.vocabulary import CardId

CHECKPOINT: Final = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"


class _Entry(msgspec.Struct, frozen=True, rename="pascal"):
    pod_uid: str = msgspec.field(name="PodUID")
    container_name: str
    device_ids: dict[str, list[str]] | None = msgspec.field(name="DeviceIDs", default=None)


class _Data(msgspec.Struct, frozen=True):
    entries: list[_Entry] | None = msgspec.field(name="PodDeviceEntries", default=None)


class _Checkpoint(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data")


class Kubelet:
    """kubelet on this node."""

    def __init__(self, resources: PodResources, checkpoint: Path) -> None:
        self._resources = resources
        self._checkpoint = checkpoint

    async def served(self, request: CreateRequest) -> frozenset[CardId] | None:
        """The cards that kubelet gave this container; None where nobody can tell."""
        wanted = (request.namespace, request.pod, request.container)
        try:
            containers = await self._resources.served()
        except CriError:
            return None
        for each in containers:
            if (each.namespace, each.pod, each.container) == wanted:
                return card_ids(each.devices)
        return self._written_down(request)

    def _written_down(self, request: CreateRequest) -> frozenset[CardId] | None:
        try:
            checkpoint = msgspec.json.decode(self._checkpoint.read_bytes(), type=_Checkpoint)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return card_ids(
            device
            for entry in checkpoint.data.entries or ()
            if (entry.pod_uid, entry.container_name) == (request.uid, request.container)
            for devices in (entry.device_ids or {}).values()
            for device in devices
        )
