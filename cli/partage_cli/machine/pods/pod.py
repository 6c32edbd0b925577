"""What a pod may say on one machine: a Kubernetes Pod, as far as its fields mean something here.

Fields are spelt as Kubernetes does. A field that is not named here is refused by its path, and never dropped: who
writes a limit expects it to hold. Fields of Kubernetes that can't have an effect on one machine are taken out before,
by `document`, which says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

DEFAULT_NAMESPACE: Final = "default"
RestartPolicy = Literal["Always", "OnFailure", "Never"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
PullWhen = Literal["missing", "always", "never"]
"""A pull policy, as docker spells it."""
PULLS: Final[Mapping[PullWhen, PullPolicy]] = {"missing": "IfNotPresent", "always": "Always", "never": "Never"}
Name = Annotated[str, Meta(pattern=r"\A[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?\Z")]
Port = Annotated[int, Meta(ge=1, le=65535)]


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    pass


class Metadata(Part, frozen=True, kw_only=True):
    name: Name = ""
    """Empty: the manager makes one up."""
    namespace: Name = DEFAULT_NAMESPACE
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class EnvVar(Part, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1)]
    value: str = ""


class ContainerPort(Part, frozen=True, kw_only=True):
    container_port: Port
    host_port: Port | None = None
    host_ip: str = field(default="", name="hostIP")
    protocol: Literal["TCP", "UDP"] = "TCP"
    name: str = ""


class VolumeMount(Part, frozen=True, kw_only=True):
    name: str
    mount_path: Annotated[str, Meta(pattern=r"\A/")]
    read_only: bool = False


class Amounts(Part, frozen=True, kw_only=True):
    """Quantities as they were written; ours are read by dialects, `cpu` and `memory` limit the container."""

    limits: Mapping[str, str | int] = {}
    requests: Mapping[str, str | int] = {}


class Capabilities(Part, frozen=True, kw_only=True):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityContext(Part, frozen=True, kw_only=True):
    privileged: bool = False
    run_as_user: int | None = None
    run_as_group: int | None = None
    read_only_root_filesystem: bool = False
    capabilities: Capabilities = Capabilities()


class Container(Part, frozen=True, kw_only=True):
    name: Name
    image: Annotated[str, Meta(min_length=1)]
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: Amounts = Amounts()
    volume_mounts: tuple[VolumeMount, ...] = ()
    image_pull_policy: PullPolicy = "IfNotPresent"
    stdin: bool = False
    tty: bool = False
    security_context: SecurityContext = SecurityContext()


class HostPath(Part, frozen=True, kw_only=True):
    path: Annotated[str, Meta(pattern=r"\A/")]
    type: str = ""
    """As in Kubernetes; empty takes what is there, and makes a folder where nothing is."""


class EmptyDir(Part, frozen=True, kw_only=True):
    medium: Literal["", "Memory"] = ""


class Volume(Part, frozen=True, kw_only=True):
    """Of the two sources it has one."""

    name: Name
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None


class Spec(Part, frozen=True, kw_only=True):
    containers: Annotated[tuple[Container, ...], Meta(min_length=1, max_length=16)]
    init_containers: Annotated[tuple[Container, ...], Meta(max_length=16)] = ()
    """Run one after the other, each to its end, before the others start."""
    volumes: tuple[Volume, ...] = ()
    restart_policy: RestartPolicy = "Always"
    host_network: bool = False
    hostname: str = ""
    termination_grace_period_seconds: Annotated[int, Meta(ge=0, le=3600)] = 30
    security_context: SecurityContext = SecurityContext()
    runtime_class_name: str | None = None


class Pod(Part, frozen=True, kw_only=True):
    api_version: Literal["v1"] = "v1"
    kind: Literal["Pod"] = "Pod"
    metadata: Metadata = Metadata()
    spec: Spec
