"""Partage's own pods in the API server, with the fields that commands use. Pure."""

from __future__ import annotations

import msgspec

from partage_base.kube.objects import Meta


class OwnContainer(msgspec.Struct, frozen=True):
    name: str = ""
    image: str = ""

    @property
    def tag(self) -> str | None:
        """The image's tag, which is its version; None for an image with only a digest."""
        return self.image.partition("@")[0].rpartition("/")[2].partition(":")[2] or None


class OwnPodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a pod, or of a workload's pod template."""

    node_name: str = ""
    containers: tuple[OwnContainer, ...] = ()

    @property
    def version(self) -> str | None:
        """The tag of the first container's image."""
        return self.containers[0].tag if self.containers else None


class ContainerPhase(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a container that waits or has terminated."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0


class ContainerState(msgspec.Struct, frozen=True):
    waiting: ContainerPhase | None = None
    terminated: ContainerPhase | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class OwnPodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    message: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()


class OwnPod(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    spec: OwnPodSpec = OwnPodSpec()
    status: OwnPodStatus = OwnPodStatus()
