"""What kubelet gave away by itself: its PodResources service (v1), asked for all pods at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from partage_base.cri.client import UnaryClient
from partage_base.cri.runtime import parsed
from partage_base.cri.schema import ListPodResourcesResponse

_LIST: Final = "/v1.PodResourcesLister/List"


@dataclass(frozen=True, kw_only=True)
class ServedContainer:
    """A container and what kubelet's device manager or DRA gave it."""

    namespace: str
    pod: str
    container: str
    devices: tuple[str, ...]
    """Ids of devices as their plugins name them, and names of CDI devices."""


class PodResources:
    """kubelet's pod resources. It does not name init containers that end before the others start."""

    def __init__(self, client: UnaryClient, *, deadline_s: float = 1.0) -> None:
        self._client = client
        self._deadline_s = deadline_s

    async def served(self) -> tuple[ServedContainer, ...]:
        """All containers with what they were given; raises `PeerError` or `MessageWrong`."""
        raw = await self._client.call(_LIST, b"", deadline_s=self._deadline_s)
        answer = parsed(ListPodResourcesResponse(), raw, "List")
        return tuple(
            ServedContainer(
                namespace=_text(pod.namespace),
                pod=_text(pod.name),
                container=_text(container.name),
                devices=(
                    *(_text(id_) for devices in container.devices for id_ in devices.device_ids),
                    *(
                        _text(device.name)
                        for resource in container.dynamic_resources
                        for claim in resource.claim_resources
                        for device in claim.cdi_devices
                    ),
                ),
            )
            for pod in answer.pod_resources
            for container in pod.containers
        )


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
