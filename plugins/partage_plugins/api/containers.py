"""A container that is about to be created, as node plugins see it, and the changes that they may make to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from partage_plugins.api.allocation import Grants, typed_grants
from partage_plugins.api.inventory import typed_part
from partage_plugins.api.kinds import GrantT, KindType, PartT, Promise, RequestT
from partage_plugins.api.names import BudgetName, ContainerKey, ContainerName, Kind
from partage_plugins.api.pods import Gang, PodRef

LONGEST_PATH: Final = 4096
AbsolutePath = Annotated[str, Meta(pattern=rf"\A/[^\x00]{{0,{LONGEST_PATH - 1}}}\Z")]
EnvName = Annotated[str, Meta(pattern=r"\A[^=\x00]{1,4096}\Z")]
EnvValue = Annotated[str, Meta(pattern=r"\A[^\x00]{0,131072}\Z")]
CdiName = Annotated[str, Meta(pattern=r"\A[a-z0-9.-]{1,253}/[A-Za-z0-9_-]{1,63}=[A-Za-z0-9_.:-]{1,253}\Z")]
AnnotationKey = Annotated[str, Meta(pattern=r"\A([a-z0-9.-]{1,253}/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")]
DevicePermissions = Literal["r", "w", "rw", "rm", "wm", "rwm", "m"]


class Mount(Struct, frozen=True, kw_only=True):
    """A file or folder of the node, mounted into the container."""

    container_path: AbsolutePath
    host_path: AbsolutePath
    readonly: bool = True


class Device(Struct, frozen=True, kw_only=True):
    """A device node of the node, added to the container."""

    container_path: AbsolutePath
    host_path: AbsolutePath
    permissions: DevicePermissions = "rw"


class Security(Struct, frozen=True, kw_only=True):
    """The settings that decide whether limits can be enforced in this container."""

    privileged: bool = False
    capabilities: tuple[str, ...] = ()
    host_pid: bool = False
    runtime_handler: str = ""


class Runtime(Struct, frozen=True, kw_only=True):
    """What the container runtime reports about itself; None where it reports nothing."""

    program: str | None = None
    """The program that will run the container, such as `/usr/bin/runc`."""
    takes_cdi: bool | None = None
    """Whether it injects CDI devices from the specs in /var/run/cdi."""


class Container(Struct, frozen=True, kw_only=True):
    """A container as kubelet requested it; changes to this object have no effect."""

    key: ContainerKey
    pod: PodRef
    name: ContainerName
    attempt: int = 0
    image: str = ""
    annotations: Mapping[str, str] = {}
    """The pod's annotations. Users can edit them: never derive grants or limits from them."""
    labels: Mapping[str, str] = {}
    """The pod's labels, including kubelet's; users can edit these too."""
    env: tuple[tuple[str, bytes], ...] = ()
    """In order, with duplicates; without the variables that the image itself sets."""
    mounts: tuple[Mount, ...] = ()
    """With normalized paths in the container; without volumes that are images, which have no path on the node."""
    devices: tuple[Device, ...] = ()
    security: Security = Security()
    runtime: Runtime = Runtime()
    budgets: Mapping[Kind, BudgetName] = {}
    """The kinds whose grants come from a budget. A budget is identified by the pod's uid and this name."""
    gang: Gang | None = None
    """The pod's gang, from its allocation."""
    is_claim: bool = False
    """True for a claim instead of a container: `pod` names the claim, and the containers that will use it, any number
    of them, are not known. The adjustment is applied to all of them by CDI."""


class Granted(Struct, frozen=True, kw_only=True):
    """A container's grants, and the inventory of the granted kinds."""

    gen: int
    grants: Grants
    parts: Mapping[Kind, object] = {}
    suspended: bool | None = None
    """For a container that is running already: whether its memory is to leave its devices (True), or may come back
    (False). Asked again until `enforces` of the result has `suspended`; refused if that can't be."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
        """The grants of this kind."""
        return typed_grants(self.grants, kind)

    def part(self, kind: KindType[RequestT, GrantT, PartT]) -> PartT | None:
        """This kind's part of the node's inventory."""
        return typed_part(self.parts, kind)


class Adjustment(Struct, frozen=True, kw_only=True):
    """The changes that a plugin makes to a CreateContainer request. A plugin returns it; the host applies it."""

    env: Mapping[EnvName, EnvValue] = {}
    """Each is added, or replaced in place."""
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Device, ...] = ()
    cdi: tuple[CdiName, ...] = ()
    """Names of CDI devices, `vendor/class=name`."""
    annotations: Mapping[AnnotationKey, str] = {}
    """Set on the container, for the runtime and its hooks."""
    memory_swap_limit_in_bytes: Annotated[int, Meta(ge=1, le=(1 << 63) - 1)] | None = None
    """Limit of memory plus swap, as in the CRI; None leaves kubelet's value."""
    enforces: Mapping[Kind, tuple[Promise, ...]] = {}
    """The promises of the container's grants that this adjustment enforces."""

    @property
    def places(self) -> tuple[str, ...]:
        """Paths in the container at which it adds something."""
        mounts = (each.container_path for each in self.mounts)
        return (*mounts, *(each.container_path for each in self.devices))
