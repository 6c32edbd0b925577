"""A CreateContainer request: decoded into a frozen view, and rewritten with changes. Pure.

The view has what decisions need. The container's identity and our own annotations must be UTF-8, or the message is
rejected. All other text may be any bytes, which kubelet up to 1.33 and containerd up to 2.1 pass on, and is preserved
(`surrogateescape`). Of pairs with the same key the last one counts, as in containerd's decoder.

A changed variable is replaced at its first position and its duplicates are removed: containerd passes duplicates on to
the process, where it depends on the reader which one counts. Everything else keeps its place, unknown fields included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from partage_base.cri.errors import MessageWrong
from partage_base.cri.schema import RESOURCES, CreateContainerRequest
from partage_plugins.api import Adjustment, Device, Mount
from partage_plugins.api.keys import ALLOCATION, SIGNATURE

POD_NAMESPACE: Final = 0  # NamespaceMode.POD, also the default
NODE_NAMESPACE: Final = 2  # NamespaceMode.NODE
TARGET_NAMESPACE: Final = 3  # NamespaceMode.TARGET
_32_BITS: Final = 0xFFFF_FFFF
"""Go truncates a number that is too large for its field to these bits."""


class RequestMount(Struct, frozen=True, kw_only=True):
    """A mount; an image volume has no host path."""

    container_path: str
    host_path: str
    readonly: bool = False


class RequestDevice(Struct, frozen=True, kw_only=True):
    container_path: str
    host_path: str
    permissions: str


class CreateRequest(Struct, frozen=True, kw_only=True):
    """A CreateContainer request of kubelet. Pod and annotations come from its own sandbox_config."""

    sandbox_id: str
    namespace: str
    pod: str
    uid: str
    annotations: Mapping[str, str]
    """The pod's current ones. Users can edit them."""
    labels: Mapping[str, str]
    """The pod's, including kubelet's own."""
    container: str
    attempt: int
    image: str
    env: tuple[tuple[str, bytes], ...]
    mounts: tuple[RequestMount, ...]
    devices: tuple[RequestDevice, ...]
    cdi: tuple[str, ...]
    own_annotations: Mapping[str, str]
    """The container's: written by kubelet and device plugins, never by users."""
    privileged: bool
    capabilities: tuple[str, ...]
    """Added and ambient ones, as written."""
    host_pid: bool
    pod_pid: bool
    """Whether all containers of the pod share its PID namespace with this one."""
    target: str
    """The id of the container whose PID namespace it joins; empty for none."""


class Changes(Struct, frozen=True, kw_only=True):
    """Changes to a request; what is already set is replaced in place."""

    env: Mapping[str, bytes] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Device, ...] = ()
    cdi: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}
    resources: Mapping[str, int] = {}
    """By their CRI names, as `resources_of` returns them."""
    without_mounts: frozenset[str] = frozenset()
    """Container paths, as the request writes them, of mounts to remove."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


def read_create(message: bytes) -> CreateRequest:
    """Decodes the request; raises `MessageWrong` for invalid bytes."""
    request = _parsed(message)
    config, sandbox = request.config, request.sandbox_config
    security = config.linux.security_context
    options = (security.namespace_options, sandbox.linux.security_context.namespace_options)
    own_pid, pod_pid = (each.pid & _32_BITS for each in options)
    added = (*security.capabilities.add_capabilities, *security.capabilities.add_ambient_capabilities)
    return CreateRequest(
        sandbox_id=_strict(request.pod_sandbox_id, "the sandbox's id"),
        namespace=_strict(sandbox.metadata.namespace, "the pod's namespace"),
        pod=_strict(sandbox.metadata.name, "the pod's name"),
        uid=_strict(sandbox.metadata.uid, "the pod's uid"),
        annotations=_annotations(sandbox.annotations),
        labels=text_pairs(sandbox.labels, "surrogateescape"),
        container=_strict(config.metadata.name, "the container's name"),
        attempt=config.metadata.attempt & _32_BITS,
        image=_text(config.image.user_specified_image or config.image.image),
        env=tuple((_text(variable.key), variable.value) for variable in config.envs),
        mounts=tuple(
            RequestMount(
                container_path=_text(mount.container_path), host_path=_text(mount.host_path), readonly=mount.readonly
            )
            for mount in config.mounts
        ),
        devices=tuple(
            RequestDevice(
                container_path=_text(device.container_path),
                host_path=_text(device.host_path),
                permissions=_text(device.permissions),
            )
            for device in config.devices
        ),
        cdi=tuple(_text(device.name) for device in config.cdi_devices),
        own_annotations=text_pairs(config.annotations, "surrogateescape"),
        privileged=security.privileged,
        capabilities=tuple(map(_text, added)),
        host_pid=NODE_NAMESPACE in (own_pid, pod_pid),
        pod_pid=own_pid == POD_NAMESPACE,
        target=_text(options[0].target_id) if own_pid == TARGET_NAMESPACE else "",
    )


def resources_of(adjustment: Adjustment) -> dict[str, int]:
    """The container resources that `adjustment` sets."""
    return {name: value for name in RESOURCES if (value := getattr(adjustment, name)) is not None}


def rewritten(message: bytes, changes: Changes) -> bytes:
    """The request with these changes; without changes, the same bytes."""
    if not changes:
        return message
    request = _parsed(message)
    config = request.config
    _replace_env(config.envs, changes.env)
    for index in reversed(range(len(config.mounts))):
        if _text(config.mounts[index].container_path) in changes.without_mounts:
            del config.mounts[index]
    for mount in changes.mounts:
        place = _at(config.mounts, mount.container_path)
        place.host_path, place.readonly = _raw(mount.host_path), mount.readonly
    for device in changes.devices:
        place = _at(config.devices, device.container_path)
        place.host_path, place.permissions = _raw(device.host_path), _raw(device.permissions)
    present = {device.name for device in config.cdi_devices}
    for name in dict.fromkeys(map(_raw, changes.cdi)):
        if name not in present:
            config.cdi_devices.add(name=name)
    for resource, value in changes.resources.items():
        setattr(config.linux.resources, resource, value)
    _replace_env(config.annotations, {key: value.encode() for key, value in changes.annotations.items()})
    written: bytes = request.SerializeToString()
    return written


def _parsed(message: bytes) -> Any:  # noqa: ANN401  a message of a class made at run time
    request = CreateContainerRequest()
    try:
        request.ParseFromString(message)
    except DecodeError:
        raise MessageWrong("CreateContainer: the bytes are no such message") from None
    return request


def text_pairs(pairs: Iterable[Any], errors: str = "strict") -> dict[str, str]:
    """A map of text; raises `UnicodeDecodeError` unless `errors` is set."""
    return {pair.key.decode(errors=errors): pair.value.decode(errors=errors) for pair in pairs}


def _annotations(pairs: Iterable[Any]) -> dict[str, str]:
    found = text_pairs(pairs, "surrogateescape")
    for key in (ALLOCATION, SIGNATURE):
        _strict(_raw(found.get(key, "")), f"annotation {key}")
    return found


def _strict(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MessageWrong(f"CreateContainer: {what} is not UTF-8") from None


def _replace_env(pairs: Any, values: Mapping[str, bytes]) -> None:  # noqa: ANN401  a repeated field
    left = {_raw(name): value for name, value in values.items()}
    seen: set[bytes] = set()
    surplus: list[int] = []
    for index, pair in enumerate(pairs):
        if pair.key in seen:
            surplus.append(index)
        elif pair.key in left:
            pair.value = left[pair.key]
            seen.add(pair.key)
    for index in reversed(surplus):
        del pairs[index]
    for name, value in left.items():
        if name not in seen:
            pairs.add(key=name, value=value)


def _at(places: Any, container_path: str) -> Any:  # noqa: ANN401  as above
    raw = _raw(container_path)
    return next((place for place in places if place.container_path == raw), None) or places.add(container_path=raw)


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
