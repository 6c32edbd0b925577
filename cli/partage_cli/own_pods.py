"""Partage's own pods as the API server has them, as far as commands tell of them. Pure."""

from __future__ import annotations

import msgspec

from partage_base.kube import Meta


class OwnContainer(msgspec.Struct, frozen=True):
    name: str = ""
    image: str = ""

    @property
    def tag(self) -> str | None:
        """The image's, which is its version; None where it has only a digest."""
        return self.image.partition("@")[0].rpartition("/")[2].partition(":")[2] or None


class OwnPodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Of a pod, or of the pods of a workload."""

    node_name: str = ""
    containers: tuple[OwnContainer, ...] = ()

    @property
    def version(self) -> str | None:
        """By the image of its first container."""
        return self.containers[0].tag if self.containers else None


class ContainerPhase(msgspec.Struct, frozen=True, rename="camel"):
    """Of a container that waits or has ended."""

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
