"""Plans as the container runtime interface says them, and its answers as types of ours. Pure.

Text is bytes on the wire (`kubelet_schema` says why); it is decoded here alone, and what is no UTF-8 is replaced: it is
shown to people and never acted upon, but for labels and annotations, which make the answer wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast

import msgspec
from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from partage_base.cri.create_request import text_pairs
from partage_base.cri.errors import MessageWrong
from partage_base.cri.kubelet_schema import kubelet_message
from partage_cli.machine.runtime.plans import UID_LABEL, ContainerPlan, Dns, SandboxPlan

State = Literal["created", "running", "exited", "unknown"]
_STATES: Final[tuple[State, ...]] = ("created", "running", "exited", "unknown")
_READY: Final = 0
_OF_POD: Final = 0
_OF_CONTAINER: Final = 1
_OF_NODE: Final = 2
_RUNTIME_DEFAULT: Final = 0
_UNCONFINED: Final = 1
_PROTOCOLS: Final = {"TCP": 0, "UDP": 1}
# What kubelet hides from every container that is not privileged.
_MASKED: Final = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

Value = str | bytes | int | bool | None | tuple["Value", ...] | Mapping[str, "Value"]


class Sandbox(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    ready: bool
    created_ns: int
    annotations: Mapping[str, str]
    labels: Mapping[str, str]


class ListedContainer(Struct, frozen=True, kw_only=True):
    id: str
    sandbox_id: str
    pod_uid: str
    """Empty for a container that was not made as kubelet makes them."""
    name: str
    attempt: int
    state: State
    created_ns: int
    image: str
    annotations: Mapping[str, str]


class ContainerState(Struct, frozen=True, kw_only=True):
    state: State
    started_ns: int | None
    finished_ns: int | None
    exit_code: int | None
    """None while it has not ended."""
    reason: str
    message: str
    pid: int | None
    """Of its first process, while it runs."""
    log_path: str

    @property
    def is_lost(self) -> bool:
        """Whether it ended unseen: the runtime, or the whole machine, went away under it."""
        return self.state == "unknown" or (self.state == "exited" and self.reason == "Unknown")


class StoredImage(Struct, frozen=True, kw_only=True):
    id: str
    names: tuple[str, ...]
    digests: tuple[str, ...]
    bytes: int


class _Info(Struct, frozen=True):
    pid: int = 0


def message(kind: str, **fields: Value) -> bytes:
    """The bytes of a message with these fields; what is None is not said."""
    made = kubelet_message(kind)()
    _fill(made, fields)
    return made.SerializeToString()


def read(kind: str, raw: bytes) -> Any:  # noqa: ANN401  a message of a class made at run time
    """Raises `MessageWrong`."""
    answer = kubelet_message(kind)()
    try:
        answer.ParseFromString(raw)
    except DecodeError:
        raise MessageWrong(f"{kind}: the bytes are no such message") from None
    return answer


def run_sandbox(plan: SandboxPlan) -> bytes:
    return message("RunPodSandboxRequest", config=_sandbox(plan), runtime_handler=plan.runtime_handler or None)


def create_container(sandbox_id: str, plan: ContainerPlan, sandbox: SandboxPlan) -> bytes:
    return message(
        "CreateContainerRequest",
        pod_sandbox_id=sandbox_id,
        config=_container(plan, sandbox),
        sandbox_config=_sandbox(sandbox),
    )


def sandboxes(raw: bytes) -> tuple[Sandbox, ...]:
    return tuple(_listed_sandbox(each) for each in read("ListPodSandboxResponse", raw).items)


def containers(raw: bytes) -> tuple[ListedContainer, ...]:
    return tuple(_listed_container(each) for each in read("ListContainersResponse", raw).containers)


def container_state(raw: bytes) -> ContainerState:
    answer = read("ContainerStatusResponse", raw)
    status, info = answer.status, next((pair.value for pair in answer.info if pair.key == b"info"), b"")
    state = _state(status.state)
    # The runtime may see that a short one has ended before it writes down that it began.
    started_ns = min(status.started_at, status.finished_at or status.started_at)
    return ContainerState(
        state=state,
        started_ns=started_ns or None,
        finished_ns=status.finished_at or None,
        exit_code=_signed(status.exit_code) if state == "exited" else None,
        reason=_text(status.reason),
        message=_text(status.message),
        pid=_pid(info) if state == "running" else None,
        log_path=_text(status.log_path),
    )


def images(raw: bytes) -> tuple[StoredImage, ...]:
    return tuple(_image(each) for each in read("ListImagesResponse", raw).images)


def image_id(raw: bytes) -> str | None:
    answer = read("ImageStatusResponse", raw)
    return _text(answer.image.id) if answer.HasField("image") else None


def why_not_ready(raw: bytes) -> str:
    """What the runtime says it lacks, or nothing."""
    conditions = read("StatusResponse", raw).status.conditions
    return "; ".join(
        f"{_text(each.type)} is not so: {_text(each.message) or _text(each.reason)}"
        for each in conditions
        if not each.status
    )


def _sandbox(plan: SandboxPlan) -> Mapping[str, Value]:
    dns = Dns() if plan.host_network else plan.premises.dns
    return {
        "metadata": {"name": plan.name, "uid": plan.uid, "namespace": plan.namespace, "attempt": plan.attempt},
        "hostname": plan.hostname,
        "log_directory": plan.log_folder,
        "dns_config": {"servers": dns.servers, "searches": dns.searches, "options": dns.options}
        if dns.servers
        else None,
        "port_mappings": tuple(
            {
                "protocol": _PROTOCOLS[port.protocol],
                "container_port": port.container_port,
                "host_port": port.host_port,
                "host_ip": port.host_ip,
            }
            for port in plan.ports
        ),
        "labels": _pairs(plan.labels),
        "annotations": _pairs(plan.annotations),
        "linux": {
            "security_context": {
                "namespace_options": _namespaces(plan),
                "privileged": plan.privileged,
                "seccomp": _seccomp(privileged=plan.privileged),
            }
        },
    }


def _container(plan: ContainerPlan, sandbox: SandboxPlan) -> Mapping[str, Value]:
    security, limits = plan.security, plan.limits
    is_confined = not security.privileged
    return {
        "metadata": {"name": plan.name, "attempt": plan.attempt},
        "image": {"image": plan.image, "user_specified_image": plan.image_name},
        "command": plan.command,
        "args": plan.args,
        "working_dir": plan.working_dir or None,
        "envs": _pairs(dict(plan.env)),
        "mounts": tuple(
            {"container_path": mount.target, "host_path": mount.source, "readonly": mount.read_only}
            for mount in plan.mounts
        ),
        "labels": _pairs(plan.labels),
        "annotations": _pairs(plan.annotations),
        "log_path": plan.log_path,
        "stdin": plan.stdin,
        "stdin_once": plan.stdin,
        "tty": plan.tty,
        "linux": {
            "resources": {
                "cpu_shares": limits.cpu_shares,
                "cpu_quota": limits.cpu_quota_us,
                "cpu_period": limits.cpu_period_us,
                "memory_limit_in_bytes": limits.memory_bytes,
            },
            "security_context": {
                "privileged": security.privileged,
                "namespace_options": _namespaces(sandbox),
                "capabilities": {
                    "add_capabilities": security.capabilities.add,
                    "drop_capabilities": security.capabilities.drop,
                },
                "run_as_user": _number(security.run_as_user),
                "run_as_group": _number(security.run_as_group),
                "readonly_rootfs": security.read_only_root_filesystem,
                "masked_paths": _MASKED if is_confined else (),
                "readonly_paths": _READ_ONLY if is_confined else (),
                "seccomp": _seccomp(privileged=security.privileged),
            },
        },
    }


def _namespaces(plan: SandboxPlan) -> Mapping[str, Value]:
    """Each container sees its own processes; the pod has one network, and one memory to share."""
    return {"network": _OF_NODE if plan.host_network else _OF_POD, "pid": _OF_CONTAINER, "ipc": _OF_POD}


def _seccomp(*, privileged: bool) -> Mapping[str, Value]:
    return {"profile_type": _UNCONFINED if privileged else _RUNTIME_DEFAULT}


def _number(value: int | None) -> Mapping[str, Value] | None:
    return None if value is None else {"value": value}


def _pairs(mapping: Mapping[str, str]) -> tuple[Value, ...]:
    return tuple({"key": key, "value": value} for key, value in mapping.items())


def _fill(made: Message, fields: Mapping[str, Value]) -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            part = getattr(made, name)
            part.SetInParent()
            _fill(part, value)
        elif isinstance(value, tuple):
            _extend(getattr(made, name), value)
        elif value is not None:
            setattr(made, name, _scalar(value))


def _extend(repeated: Any, values: tuple[Value, ...]) -> None:  # noqa: ANN401  a repeated field
    for value in values:
        if isinstance(value, Mapping):
            _fill(repeated.add(), value)
        else:
            repeated.append(_scalar(value))


def _scalar(value: Value) -> bytes | int:
    return value.encode(errors="surrogateescape") if isinstance(value, str) else cast("bytes | int", value)


def _listed_sandbox(each: Any) -> Sandbox:  # noqa: ANN401  as above
    return Sandbox(
        id=_text(each.id),
        name=_text(each.metadata.name),
        namespace=_text(each.metadata.namespace),
        uid=_text(each.metadata.uid),
        attempt=each.metadata.attempt,
        ready=each.state == _READY,
        created_ns=each.created_at,
        annotations=_map(each.annotations, "ListPodSandbox"),
        labels=_map(each.labels, "ListPodSandbox"),
    )


def _listed_container(each: Any) -> ListedContainer:  # noqa: ANN401  as above
    return ListedContainer(
        id=_text(each.id),
        sandbox_id=_text(each.pod_sandbox_id),
        pod_uid=_map(each.labels, "ListContainers").get(UID_LABEL, ""),
        name=_text(each.metadata.name),
        attempt=each.metadata.attempt,
        state=_state(each.state),
        created_ns=each.created_at,
        image=_text(each.image.user_specified_image or each.image.image),
        annotations=_map(each.annotations, "ListContainers"),
    )


def _image(each: Any) -> StoredImage:  # noqa: ANN401  as above
    names, digests = (tuple(map(_text, several)) for several in (each.repo_tags, each.repo_digests))
    return StoredImage(id=_text(each.id), names=names, digests=digests, bytes=each.size)


def _state(number: int) -> State:
    return _STATES[number] if 0 <= number < len(_STATES) else "unknown"


def _signed(number: int) -> int:
    """A 32 bit number, as the interface declares it."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _pid(info: bytes) -> int | None:
    """What containerd tells beyond the interface."""
    try:
        return msgspec.json.decode(info, type=_Info).pid or None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _map(pairs: Iterable[Any], what: str) -> dict[str, str]:
    try:
        return text_pairs(pairs)
    except UnicodeDecodeError:
        raise MessageWrong(f"{what}: a label or annotation is not UTF-8") from None


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
