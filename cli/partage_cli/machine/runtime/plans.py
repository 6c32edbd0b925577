"""What a pod becomes for the runtime: one sandbox and its containers, as plain values. Pure.

What kubelet would work out, this does: references to variables are filled in, amounts become the kernel's numbers, and
volumes become paths of the machine. Images are named by their caller, who has them in the runtime's store by then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from partage_cli.machine.places import LOGS, VOLUMES
from partage_cli.machine.pods.pod import Amounts, Container, Pod, SecurityContext, Volume
from partage_plugins.codecs.quantity import parse_quantity, parse_whole_quantity
from partage_plugins.errors import DecodeError, Refused

NAME_LABEL: Final = "io.kubernetes.pod.name"
NAMESPACE_LABEL: Final = "io.kubernetes.pod.namespace"
UID_LABEL: Final = "io.kubernetes.pod.uid"
CONTAINER_LABEL: Final = "io.kubernetes.container.name"
_MOST_HOSTNAME: Final = 63
_PERIOD_US: Final = 100_000
_LEAST_QUOTA_US: Final = 1000
_SHARES_OF_A_CPU: Final = 1024
_LEAST_SHARES: Final = 2
_MOST_CPUS: Final = 1 << 16
_REFERENCE: Final = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


class Dns(Struct, frozen=True, kw_only=True):
    """With no server: the machine's own resolv.conf, as it is."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Premises(Struct, frozen=True, kw_only=True):
    """What a plan must know of the machine."""

    root: str = "/"
    dns: Dns = Dns()


class PortPlan(Struct, frozen=True, kw_only=True):
    container_port: int
    host_port: int
    host_ip: str = ""
    protocol: Literal["TCP", "UDP"] = "TCP"


class SandboxPlan(Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str
    attempt: int = 0
    hostname: str = ""
    host_network: bool = False
    privileged: bool = False
    ports: tuple[PortPlan, ...] = ()
    premises: Premises = Premises()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    runtime_handler: str = ""

    @property
    def log_folder(self) -> str:
        return f"{self.premises.root.rstrip('/')}/{LOGS}/{self.uid}"


class MountPlan(Struct, frozen=True, kw_only=True):
    source: str
    target: str
    read_only: bool = False


class CgroupPlan(Struct, frozen=True, kw_only=True):
    """As the kernel counts; None sets nothing."""

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_bytes: int | None = None


class ContainerPlan(Struct, frozen=True, kw_only=True):
    name: str
    attempt: int = 0
    image: str
    """As the runtime knows it: an id, or a name."""
    image_name: str
    """As a person wrote it."""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[MountPlan, ...] = ()
    log_path: str
    """Below the log folder of its sandbox."""
    stdin: bool = False
    tty: bool = False
    limits: CgroupPlan = CgroupPlan()
    security: SecurityContext = SecurityContext()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def sandbox_plan(
    pod: Pod, *, uid: str, attempt: int, annotations: Mapping[str, str], premises: Premises
) -> SandboxPlan:
    """The annotations stand beside the pod's own, and before them."""
    spec = pod.spec
    every = (*spec.init_containers, *spec.containers)
    ports = () if spec.host_network else tuple(_ports(every))
    return SandboxPlan(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        uid=uid,
        attempt=attempt,
        hostname="" if spec.host_network else (spec.hostname or pod.metadata.name)[:_MOST_HOSTNAME].rstrip("-."),
        host_network=spec.host_network,
        privileged=any(_security(pod, each).privileged for each in every),
        ports=ports,
        premises=premises,
        labels={**pod.metadata.labels, **_pod_labels(pod.metadata.name, pod.metadata.namespace, uid)},
        annotations={**pod.metadata.annotations, **annotations},
        runtime_handler=spec.runtime_class_name or "",
    )


def container_plan(pod: Pod, container: Container, *, sandbox: SandboxPlan, attempt: int, image: str) -> ContainerPlan:
    """Raises `Refused` or `DecodeError` for what the container says and can't have."""
    env = _env(container)
    known = dict(env)
    return ContainerPlan(
        name=container.name,
        attempt=attempt,
        image=image,
        image_name=container.image,
        command=tuple(_filled_in(text, known) for text in container.command),
        args=tuple(_filled_in(text, known) for text in container.args),
        working_dir=container.working_dir,
        env=env,
        mounts=_mounts(pod, container, sandbox.uid, sandbox.premises.root),
        log_path=f"{container.name}/{attempt}.log",
        stdin=container.stdin,
        tty=container.tty,
        limits=cgroup_plan(container.resources, path=f"$.{container.name}.resources"),
        security=_security(pod, container),
        labels={
            **_pod_labels(sandbox.name, sandbox.namespace, sandbox.uid),
            CONTAINER_LABEL: container.name,
        },
    )


def volume_source(volume: Volume, *, uid: str, root: str = "/") -> str:
    """Where the volume is on the machine; raises `Refused` for one that is no single kind."""
    if (volume.host_path is None) == (volume.empty_dir is None):
        raise Refused(f"volume {volume.name}: it needs either hostPath or emptyDir, and not both")
    if volume.host_path is not None:
        return volume.host_path.path
    folder = memory_folder(uid) if volume.empty_dir and volume.empty_dir.medium else volumes_folder(uid, root)
    return f"{folder}/{volume.name}"


def volumes_folder(uid: str, root: str = "/") -> str:
    return f"{root.rstrip('/')}/{VOLUMES}/{uid}"


def memory_folder(uid: str) -> str:
    """Linux's own file system in memory: what is written there counts for the container that wrote it."""
    return f"/dev/shm/partage-{uid}"  # noqa: S108  made by root alone, and checked to be


def cgroup_plan(amounts: Amounts, *, path: str) -> CgroupPlan:
    """What `cpu` and `memory` are for the kernel; raises `DecodeError`."""
    limit, asked = _milli_cpus(amounts.limits, f"{path}.limits"), _milli_cpus(amounts.requests, f"{path}.requests")
    shares = asked if asked is not None else limit
    memory = amounts.limits.get("memory")
    return CgroupPlan(
        cpu_shares=None if shares is None else max(_LEAST_SHARES, shares * _SHARES_OF_A_CPU // 1000),
        cpu_quota_us=None if limit is None else max(_LEAST_QUOTA_US, limit * _PERIOD_US // 1000),
        cpu_period_us=None if limit is None else _PERIOD_US,
        memory_bytes=None if memory is None else parse_whole_quantity(str(memory), path=f"{path}.limits.memory"),
    )


def _milli_cpus(amounts: Mapping[str, str | int], path: str) -> int | None:
    said = amounts.get("cpu")
    if said is None:
        return None
    cpus = parse_quantity(str(said), path=f"{path}.cpu")
    if not 0 <= cpus <= _MOST_CPUS:
        raise DecodeError("pod", path=f"{path}.cpu", value=str(said), allowed=f"processors, from 0 to {_MOST_CPUS}")
    return int(cpus * 1000)


def _security(pod: Pod, container: Container) -> SecurityContext:
    """The container's own; who it runs as may be said by the pod."""
    own, common = container.security_context, pod.spec.security_context
    return SecurityContext(
        privileged=own.privileged,
        run_as_user=common.run_as_user if own.run_as_user is None else own.run_as_user,
        run_as_group=common.run_as_group if own.run_as_group is None else own.run_as_group,
        read_only_root_filesystem=own.read_only_root_filesystem,
        capabilities=own.capabilities,
    )


def _pod_labels(name: str, namespace: str, uid: str) -> dict[str, str]:
    return {NAME_LABEL: name, NAMESPACE_LABEL: namespace, UID_LABEL: uid}


def _ports(containers: tuple[Container, ...]) -> list[PortPlan]:
    """Ports that the machine answers at; one without a host port is reached at the pod's own address."""
    return [
        PortPlan(
            container_port=port.container_port, host_port=port.host_port, host_ip=port.host_ip, protocol=port.protocol
        )
        for container in containers
        for port in container.ports
        if port.host_port is not None
    ]


def _mounts(pod: Pod, container: Container, uid: str, root: str) -> tuple[MountPlan, ...]:
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    for mount in container.volume_mounts:
        if mount.name not in volumes:
            has = ", ".join(volumes) or "none"
            raise Refused(f"container {container.name} mounts volume {mount.name}; the pod's volumes: {has}")
    return tuple(
        MountPlan(
            source=volume_source(volumes[mount.name], uid=uid, root=root),
            target=mount.mount_path,
            read_only=mount.read_only,
        )
        for mount in container.volume_mounts
    )


def _env(container: Container) -> tuple[tuple[str, str], ...]:
    """Each may refer to those before it; of two with one name the last counts."""
    known: dict[str, str] = {}
    for variable in container.env:
        known[variable.name] = _filled_in(variable.value, known)
    return tuple(known.items())


def _filled_in(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` is a variable's value where there is such a variable, and `$$` is a dollar, as in Kubernetes."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[1] else known.get(found[2], found[0])

    return _REFERENCE.sub(value, text)
