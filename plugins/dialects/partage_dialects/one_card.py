"""What dialects say for a pod as a whole: its app containers use it together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from partage_plugins.errors import Refused
from partage_plugins.vocabulary.gpu import GPU, GpuRequest
from partage_plugins.vocabulary.names import ContainerName, Kind
from partage_plugins.vocabulary.pods import Pod

Asks: TypeAlias = Mapping[ContainerName, Mapping[Kind, object]]


def asked_together(pod: Pod, wanted: GpuRequest) -> Asks:
    apps = [container.name for container in pod.containers if container.role == "app"]
    if len(apps) > 1:
        raise Refused(f"containers {', '.join(apps)} would share one part of a card; leave one of them in this pod")
    return {name: {GPU.name: wanted} for name in apps}
