"""Plugins that the kit loads beside the checked one, which must work with others and leave their kinds alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from partage_plugins.api.gpu import GPU, GpuGrant
from partage_plugins.api.kinds import AnyKind, KindType
from partage_plugins.api.names import CardId, ContainerName, Kind
from partage_plugins.api.pods import Pod, PodRequest
from partage_plugins.hooks import hookimpl
from partage_plugins.testing.subject import Subject

RESOURCE: Final = "neighbour.example.com/devices"
_DIALECT: Final = "partage_dialects.native:NativeDialect"


class NeighbourRequest(Struct, frozen=True):
    """A container's request for the neighbour's kind."""

    devices: int


class NeighbourGrant(Struct, frozen=True):
    """One of the neighbour's devices."""

    device: str


class NeighbourPart(Struct, frozen=True):
    """The neighbour's devices on a node."""

    devices: tuple[str, ...] = ()


NEIGHBOUR: Final = KindType(name=Kind("neighbour"), request=NeighbourRequest, grant=NeighbourGrant, part=NeighbourPart)


class NeighbourScheduler:
    """The owner of a kind, with a dialect of its own."""

    @hookimpl
    def partage_kind(self) -> AnyKind:
        """A kind that differs from the subject's."""
        return NEIGHBOUR

    @hookimpl
    def partage_requests(self, pod: Pod) -> Mapping[ContainerName, Mapping[Kind, object]] | None:
        """A dialect that no other plugin uses."""
        asking = [container.name for container in pod.containers if RESOURCE in container.limits]
        return {name: {NEIGHBOUR.name: NeighbourRequest(1)} for name in asking} or None

    @hookimpl
    def partage_allocate(self, request: PodRequest) -> Mapping[ContainerName, Sequence[NeighbourGrant]]:
        """Grants one device to each container with a request."""
        return {name: [NeighbourGrant("n0")] for name in request.of(NEIGHBOUR)}


class NeighbourNode:
    """The neighbour's node side, which changes nothing."""

    @hookimpl
    def partage_kind(self) -> AnyKind:
        """The same kind as on the scheduler side."""
        return NEIGHBOUR


class StandInScheduler:
    """A substitute for the owner of cards, so that no other plugin can claim them."""

    @hookimpl
    def partage_kind(self) -> AnyKind:
        return GPU

    @hookimpl
    def partage_allocate(self, request: PodRequest) -> Mapping[ContainerName, Sequence[GpuGrant]]:
        """Grants the same card to each container with a request."""
        grant = GpuGrant(card=CardId("GPU-0"), share_milli=1000, limit_milli=1000, memory_bytes=0)
        return {name: [grant] for name in request.of(GPU)}


class StandInNode:
    """A substitute for the owner of cards on the node."""

    @hookimpl
    def partage_kind(self) -> AnyKind:
        return GPU


def scheduler_paths(subject: Subject) -> dict[str, str]:
    """The subject's scheduler side, and the plugins that are loaded before it."""
    paths = {"native-dialect": _DIALECT, **_owners(subject, "Scheduler"), **subject.beside_scheduler}
    paths.pop(subject.name, None)
    return {**paths, subject.name: subject.scheduler or ""}


def node_paths(subject: Subject) -> dict[str, str]:
    """The subject's node side, and the plugins that are loaded before it."""
    paths = {**_owners(subject, "Node"), **subject.beside_node}
    return {**paths, subject.name: subject.node or ""}


def _owners(subject: Subject, framework: str) -> dict[str, str]:
    owners = {"kit-neighbour": f"{__name__}:Neighbour{framework}"}
    if subject.kind != GPU.name:
        owners["kit-gpu"] = f"{__name__}:StandIn{framework}"
    return owners
