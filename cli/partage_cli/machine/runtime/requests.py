"""Plans as the container runtime interface says them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from google.protobuf.message import Message

from partage_base.cri.kubelet_schema import kubelet_message
from partage_cli.machine.runtime.plans import ContainerPlan, Dns, SandboxPlan

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


def run_sandbox(plan: SandboxPlan) -> bytes:
    return message("RunPodSandboxRequest", config=_sandbox(plan), runtime_handler=plan.runtime_handler or None)


def create_container(sandbox_id: str, plan: ContainerPlan, sandbox: SandboxPlan) -> bytes:
    return message(
        "CreateContainerRequest",
        pod_sandbox_id=sandbox_id,
        config=_container(plan, sandbox),
        sandbox_config=_sandbox(sandbox),
    )


def message(kind: str, **fields: Value) -> bytes:
    """The bytes of a message with these fields; what is None is not said."""
    made = kubelet_message(kind)()
    _fill(made, fields)
    return made.SerializeToString()


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
