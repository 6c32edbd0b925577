"""Devices that kubelet allocated itself, from its PodResources service and its device manager's checkpoint.

The service omits init containers that end before the others start, so the checkpoint is used for devices that the
service does not name. The checkpoint keeps entries until a device is needed again, and has pods by uid only: the log
folders give their names, and the service tells whether they have ended. A pod without a log folder never had a
container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from partage_base.cri.checkpoint import RecordedUse
from partage_base.cri.podresources import ServedContainer
from partage_plugins.api.node import DeviceUse

LOGS: Final = "var/log/pods"
"""kubelet makes a folder here for each pod that has a container, named NAMESPACE_NAME_UID."""
PodName = tuple[str, str]
"""Namespace and name."""


def pods_by_uid(logs: Path) -> dict[str, PodName]:
    """The pods that have a log folder; raises `OSError` if the folders can't be listed."""
    names = [path.name.split("_") for path in logs.iterdir()]
    return {parts[2]: (parts[0], parts[1]) for parts in names if len(parts) == 3}  # noqa: PLR2004  see `LOGS`


def device_uses(
    served: Iterable[ServedContainer], recorded: Iterable[RecordedUse], pods: Mapping[str, PodName]
) -> list[DeviceUse]:
    """Every device of a living pod, each once."""
    served = tuple(served)
    uses = [
        DeviceUse(
            resource=given.resource,
            device=given.device,
            namespace=each.namespace,
            pod=each.pod,
            container=each.container,
        )
        for each in served
        for given in each.given
    ]
    named = {(use.resource, use.device) for use in uses}
    alive = {(each.namespace, each.pod) for each in served}
    by_record = (use for each in recorded if pods.get(each.pod_uid) in alive for use in _of(each, *pods[each.pod_uid]))
    return uses + [use for use in by_record if (use.resource, use.device) not in named]


def _of(recorded: RecordedUse, namespace: str, pod: str) -> Iterator[DeviceUse]:
    for device in recorded.devices:
        yield DeviceUse(
            resource=recorded.resource, device=device, namespace=namespace, pod=pod, container=recorded.container
        )
