"""Devices that kubelet allocated itself, from its PodResources service (v1), for all pods at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from partage_base.cri.client import UnaryClient
from partage_base.cri.runtime import parsed
from partage_base.cri.schema import ListPodResourcesResponse

_LIST: Final = "/v1.PodResourcesLister/List"
_DEADLINE_S: Final = 1.0


class GivenDevice(NamedTuple):
    """One allocated device, of a device plugin's resource or a DRA driver."""

    resource: str
    device: str
    """The plugin's or driver's name of it, or the name of a CDI device."""


@dataclass(frozen=True, kw_only=True)
class ServedContainer:
    """A container and its devices from kubelet's device manager or DRA."""

    namespace: str
    pod: str
    container: str
    given: tuple[GivenDevice, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(each.device for each in self.given)


class PodResources:
    """Client of kubelet's PodResources service, which omits init containers that end before the others start."""

    def __init__(self, client: UnaryClient) -> None:
        self._client = client

    async def served(self) -> tuple[ServedContainer, ...]:
        """All containers with their devices; raises `PeerError` or `MessageWrong`."""
        raw = await self._client.call(_LIST, b"", deadline_s=_DEADLINE_S)
        answer = parsed(ListPodResourcesResponse(), raw, "List")
        return tuple(
            ServedContainer(
                namespace=_text(pod.namespace),
                pod=_text(pod.name),
                container=_text(container.name),
                given=(*_of_plugins(container), *_of_drivers(container)),
            )
            for pod in answer.pod_resources
            for container in pod.containers
        )


def _of_plugins(container: Any) -> Iterator[GivenDevice]:  # noqa: ANN401  a message
    for devices in container.devices:
        resource = _text(devices.resource_name)
        yield from (GivenDevice(resource, _text(id_)) for id_ in devices.device_ids)


def _of_drivers(container: Any) -> Iterator[GivenDevice]:  # noqa: ANN401  a message
    """Devices of DRA claims; older kubelets report only the CDI devices."""
    for dynamic in container.dynamic_resources:
        for claim in dynamic.claim_resources:
            driver = _text(claim.driver_name)
            yield from (GivenDevice(driver, _text(device.name)) for device in claim.cdi_devices)
            if claim.device_name:
                yield GivenDevice(driver, _text(claim.device_name))


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
