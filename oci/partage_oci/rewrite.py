"""A container's OCI configuration: what node plugins see of it, and how their answer is applied. Pure.

Everything else stays as the engine wrote it. Our entries come last, so our mounts cover what a user mounted at the same
path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from partage_plugins.api.containers import LONGEST_PATH, Adjustment, Device, Mount, Runtime
from partage_plugins.api.containers import Container as PluginContainer
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.pods import Pod
from partage_plugins.errors import Refused
from partage_plugins.rules.paths import clean_path

HOOK: Final = "hook"
"""With this as its first argument, `partage-oci` runs as a container's hook; the second is the claim's key."""
_HOOK_TIMEOUT_S: Final = 10
_READ_ONLY: Final = ("rbind", "ro", "nosuid", "nodev", "rprivate")
_WRITABLE: Final = ("rbind", "rw", "nosuid", "nodev", "rprivate")
_NVIDIA_MAJOR: Final = 195
"""The major number of NVIDIA's cards and their control node, from Linux' device list."""
_TYPES_OF_CARDS: Final = (None, "a", "c")
_ADMINISTRATOR: Final = "CAP_SYS_ADMIN"
Document = dict[str, Any]


class DeviceNode(Struct, frozen=True):
    """A device node of the host."""

    type: Literal["c", "b"]
    major: int
    minor: int
    mode: int
    """Permission bits only."""
    uid: int
    gid: int


class _Capabilities(Struct):
    bounding: tuple[str, ...] | None = None


class _Process(Struct):
    env: tuple[str, ...] | None = None
    capabilities: _Capabilities | None = None


class _Mount(Struct):
    destination: str
    source: str = ""
    options: tuple[str, ...] | None = None


class _Node(Struct):
    path: str


class _Rule(Struct):
    allow: bool
    type: str | None = None
    major: int | None = None
    access: str | None = None


class _Memory(Struct):
    limit: int | None = None


class _Resources(Struct):
    devices: tuple[_Rule, ...] | None = None
    memory: _Memory | None = None


class _Namespace(Struct):
    type: str
    path: str | None = None
    """An existing namespace to join; None if a new one is created."""


class _Linux(Struct):
    namespaces: tuple[_Namespace, ...] | None = None
    devices: tuple[_Node, ...] | None = None
    resources: _Resources | None = None


class OciConfig(Struct):
    """The fields of a bundle's `config.json` that are used here."""

    process: _Process | None = None
    annotations: Mapping[str, str] | None = None
    mounts: tuple[_Mount, ...] | None = None
    linux: _Linux | None = None

    @property
    def env(self) -> tuple[str, ...]:
        return (self.process.env if self.process else None) or ()

    @property
    def memory_bytes(self) -> int | None:
        """Its limit of main memory, or None."""
        memory = self.linux.resources.memory if self.linux and self.linux.resources else None
        return memory.limit if memory is not None and memory.limit is not None and memory.limit > 0 else None

    def folder(self, id_: str) -> str:
        """The engine's folder of the container: the innermost one named by its id above a mount's source."""
        for mount in self.mounts or ():
            parts = mount.source.split("/")
            if id_ in parts:
                return "/".join(parts[: len(parts) - parts[::-1].index(id_)])
        return ""


def read_config(document: Document) -> OciConfig:
    """The configuration; raises `Refused` if it is invalid."""
    try:
        return msgspec.convert(document, OciConfig)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Refused(f"the container's config.json is not as OCI has it: {error}") from None


def require_confined(config: OciConfig) -> None:
    """Refuse a container in which no share would hold: it reaches all cards, or can undo its confinement.

    A container without its own PID namespace may outlive its first process, and its end could not be detected.
    """
    linux, process = config.linux or _Linux(), config.process or _Process()
    rules = (linux.resources.devices if linux.resources else None) or ()
    own_processes = any(each.type == "pid" and not each.path for each in linux.namespaces or ())
    bounding = (process.capabilities.bounding if process.capabilities else None) or ()
    for is_so, what, left_out in (
        (
            any(map(_reaches_cards, rules)),
            "reaches every card by its device rules",
            "--privileged, --gpus and the like",
        ),
        (_ADMINISTRATOR in bounding, "may undo its limits by CAP_SYS_ADMIN", "--cap-add"),
        (not own_processes, "shares its processes with others", "--pid"),
    ):
        if is_so:
            raise Refused(f"the container {what}, so no share would hold in it; leave out {left_out}")


def _reaches_cards(rule: _Rule) -> bool:
    is_of_cards = rule.type in _TYPES_OF_CARDS and rule.major in {None, -1, _NVIDIA_MAJOR}
    return rule.allow and is_of_cards and not set(rule.access or "rwm").isdisjoint("rw")


def shown(config: OciConfig, key: ContainerKey, pod: Pod, runtime: str) -> PluginContainer:
    """The container as node plugins see it."""
    env = (each.partition("=") for each in config.env)
    return PluginContainer(
        key=key,
        pod=pod.ref,
        name=pod.containers[0].name,
        annotations=dict(config.annotations or {}),
        env=tuple((name, text.encode(errors="replace")) for name, _, text in env if name),
        mounts=tuple(_mounts(config.mounts or ())),
        devices=tuple(_devices((config.linux.devices if config.linux else None) or ())),
        runtime=Runtime(program=runtime, takes_cdi=False),
    )


def rewritten(  # noqa: PLR0913  each a part of what is put in
    document: Document,
    adjustment: Adjustment,
    nodes: Sequence[tuple[Device, DeviceNode]],
    *,
    hook: str,
    key: ContainerKey,
    annotations: Mapping[str, str],
) -> Document:
    """A new document; `nodes` are the adjustment's devices with their host nodes, `hook` is a program's path."""
    if adjustment.cdi:
        raise Refused(
            f"its cards would be attached by CDI ({adjustment.cdi[0]}), which engines do before their runtime is "
            "asked; set PARTAGE_GPU_ATTACH of partage-agent to auto, raw or nvidia-env"
        )
    linux = _part(document, "linux")
    resources, hooks = _part(linux, "resources"), _part(document, "hooks")
    entry = {"path": hook, "args": [hook, HOOK, key], "timeout": _HOOK_TIMEOUT_S}
    changed = {
        **document,
        "process": {**_part(document, "process"), "env": _env(document, adjustment.env)},
        "mounts": [*_items(document, "mounts"), *map(_mount, adjustment.mounts)],
        "annotations": {**_part(document, "annotations"), **adjustment.annotations, **annotations},
        "hooks": {**hooks, "createRuntime": [*_items(hooks, "createRuntime"), entry]},
    }
    ours = {device.container_path for device, _ in nodes}
    devices = [each for each in _items(linux, "devices") if each["path"] not in ours]
    devices += [_device(device, node) for device, node in nodes]
    resources = {**resources, "devices": [*_items(resources, "devices"), *(_rule(*each) for each in nodes)]}
    if adjustment.memory_swap_limit_in_bytes is not None:
        resources["memory"] = {**_part(resources, "memory"), "swap": adjustment.memory_swap_limit_in_bytes}
    changed["linux"] = {**linux, "devices": devices, "resources": resources}
    return changed


def _part(document: Mapping[str, Any], name: str) -> Document:
    return document.get(name) or {}


def _items(document: Mapping[str, Any], name: str) -> list[Any]:
    return document.get(name) or []


def _env(document: Document, ours: Mapping[str, str]) -> list[str]:
    """Replaces the first occurrence of each name, and drops later ones."""
    left, found = dict(ours), list[str]()
    for each in _items(_part(document, "process"), "env"):
        name = each.partition("=")[0]
        if name not in ours:
            found.append(each)
        elif name in left:
            found.append(f"{name}={left.pop(name)}")
    return [*found, *(f"{name}={text}" for name, text in left.items())]


def _mount(mount: Mount) -> Document:
    options = list(_READ_ONLY if mount.readonly else _WRITABLE)
    return {"destination": mount.container_path, "type": "bind", "source": mount.host_path, "options": options}


def _device(device: Device, node: DeviceNode) -> Document:
    return {
        "path": device.container_path,
        "type": node.type,
        "major": node.major,
        "minor": node.minor,
        "fileMode": node.mode,
        "uid": node.uid,
        "gid": node.gid,
    }


def _rule(device: Device, node: DeviceNode) -> Document:
    return {
        "allow": True,
        "type": node.type,
        "major": node.major,
        "minor": node.minor,
        "access": device.permissions,
    }


def _mounts(mounts: Iterable[_Mount]) -> Iterable[Mount]:
    """Mounts whose source is a path on the host."""
    for mount in mounts:
        if mount.source.startswith("/"):
            readonly = "ro" in (mount.options or ())
            yield Mount(container_path=_path(mount.destination), host_path=_path(mount.source), readonly=readonly)


def _devices(nodes: Iterable[_Node]) -> Iterable[Device]:
    """Engines give no host path; for a card it equals the container path."""
    for node in nodes:
        yield Device(container_path=_path(node.path), host_path=_path(node.path))


def _path(path: str) -> str:
    clean = clean_path(path if path.startswith("/") else f"/{path}")
    if "\0" in clean or len(clean) > LONGEST_PATH:
        raise Refused(
            f"it has a mount or device at {path!a:.200}, which is no path of at most {LONGEST_PATH} characters"
        )
    return clean
