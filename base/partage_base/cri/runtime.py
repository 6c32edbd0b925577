"""Typed calls to the container runtime: its configuration, containers, sandboxes and images, and stopping a container.

Each call has a deadline. Labels and annotations may be any bytes, some chosen by users: invalid UTF-8 is replaced by
marks, and does not hide other containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message
from msgspec.structs import replace

from partage_base.cri.client import UnaryClient
from partage_base.cri.create_request import text_pairs
from partage_base.cri.errors import MessageWrong, PeerRefused
from partage_base.cri.runtime_config import RuntimeConfig, read_config, restores_unsaid
from partage_base.cri.schema import (
    ContainerStatusRequest,
    ContainerStatusResponse,
    ListContainersResponse,
    ListImagesResponse,
    ListPodSandboxRequest,
    ListPodSandboxResponse,
    StatusRequest,
    StatusResponse,
    StopContainerRequest,
    VersionResponse,
)
from partage_base.thread_safety import thread_safe
from partage_plugins.api.keys import CONTAINER

_SERVICE: Final = "/runtime.v1.RuntimeService/"
_LIST_IMAGES: Final = "/runtime.v1.ImageService/ListImages"
RUNNING: Final = 1
EXITED: Final = 2
_READY: Final = 0
_T = TypeVar("_T")
_STOP_S: Final = 10.0
"""Added to the grace period: the time the runtime may need to kill a container and clean up."""
POD_UID_LABEL: Final = "io.kubernetes.pod.uid"


@dataclass(frozen=True, kw_only=True)
class ListedContainer:
    """A container in the runtime."""

    id: str
    sandbox_id: str
    name: str
    pod_uid: str
    """From kubelet's label; empty for a container that is not kubelet's."""
    exited: bool
    annotations: Mapping[str, str]
    running: bool = False


@dataclass(frozen=True, kw_only=True)
class ListedSandbox:
    """A pod's sandbox in the runtime."""

    id: str
    pod_uid: str
    runtime_handler: str
    is_ready: bool = True


@dataclass(frozen=True, kw_only=True)
class ListedImage:
    """An image in the runtime's store."""

    names: tuple[str, ...]
    """Names with a tag first, then those by digest."""
    is_pinned: bool
    """The runtime needs it itself, such as the sandbox image."""


class RuntimeClient:
    def __init__(self, client: UnaryClient, *, deadline_s: float = 2.0) -> None:
        self._client = client
        self._deadline_s = deadline_s
        self._config: tuple[object, RuntimeConfig] | None = None

    async def config(self) -> RuntimeConfig:
        """Its configuration, which it reads only when it starts, so the result is cached per connection."""
        connection = self._client.connection
        if self._config is not None and self._config[0] is connection:
            return self._config[1]
        request: Any = StatusRequest(verbose=True)
        answer = await self._call("Status", request.SerializeToString(), StatusResponse())
        config = read_config(next((each.value for each in answer.info if each.key == b"config"), b""))
        if config.programs and config.restores is None:
            config = replace(config, may_restore=await self._restores_unsaid())
        if connection is not None and self._client.connection is connection:
            self._config = connection, config
        return config

    async def _restores_unsaid(self) -> bool:
        try:
            answer = await self._call("Version", b"", VersionResponse())
        except PeerRefused:
            return False
        return restores_unsaid(_text(answer.runtime_name), _text(answer.runtime_version))

    async def containers(self) -> tuple[ListedContainer, ...]:
        """All containers, in any state."""
        answer = await self._call("ListContainers", b"", ListContainersResponse())
        return tuple(_container(each) for each in answer.containers)

    async def pid(self, container_id: str) -> int | None:
        """The pid of the container's first process; None if it has none, or the runtime does not report it."""
        info = _read_info(await self._info(container_id), _Info)
        return (info.pid or None) if info else None

    async def capabilities(self, container_id: str) -> frozenset[str] | None:
        """All capabilities of the container's processes; None if the runtime does not report them."""
        info = _read_info(await self._info(container_id), _InfoWithSpec)
        if info is None:
            return None
        sets = (info.spec.process.capabilities or {}).values()
        return frozenset(name for names in sets for name in names or ())

    async def cdi_devices(self, container_id: str) -> tuple[str, ...] | None:
        """The CDI devices that kubelet requested; None if the runtime does not report them."""
        info = _read_info(await self._info(container_id), _InfoWithConfig)
        return None if info is None else tuple(each.name for each in info.config.devices or ())

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Stops the container, and kills it after the grace period; one that has already ended is not an error."""
        request: Any = StopContainerRequest(container_id=container_id.encode(), timeout=grace_s)
        raw = request.SerializeToString()
        await self._client.call(f"{_SERVICE}StopContainer", raw, deadline_s=grace_s + _STOP_S)

    async def sandboxes(self) -> tuple[ListedSandbox, ...]:
        return await self._sandboxes(ListPodSandboxRequest())

    async def sandbox(self, sandbox_id: str) -> ListedSandbox | None:
        """One sandbox, or None if the runtime has none with this id."""
        request: Any = ListPodSandboxRequest()
        request.filter.id = sandbox_id.encode()
        # The runtime accepts a prefix of an id.
        return next((each for each in await self._sandboxes(request) if each.id == sandbox_id), None)

    async def images(self) -> tuple[ListedImage, ...]:
        raw = await self._client.call(_LIST_IMAGES, b"", deadline_s=self._deadline_s)
        return tuple(
            ListedImage(names=tuple(map(_text, (*each.repo_tags, *each.repo_digests))), is_pinned=each.pinned)
            for each in parsed(ListImagesResponse(), raw, "ListImages").images
        )

    async def _sandboxes(self, request: Message) -> tuple[ListedSandbox, ...]:
        answer = await self._call("ListPodSandbox", request.SerializeToString(), ListPodSandboxResponse())
        return tuple(
            ListedSandbox(
                id=_text(each.id),
                pod_uid=_text(each.metadata.uid),
                runtime_handler=_text(each.runtime_handler),
                is_ready=each.state == _READY,
            )
            for each in answer.items
        )

    async def _info(self, container_id: str) -> bytes:
        request: Any = ContainerStatusRequest(container_id=container_id.encode(), verbose=True)
        answer = await self._call("ContainerStatus", request.SerializeToString(), ContainerStatusResponse())
        return next((each.value for each in answer.info if each.key == b"info"), b"")

    async def _call(self, method: str, request: bytes, answer: Message) -> Any:  # noqa: ANN401  made at run time
        raw = await self._client.call(_SERVICE + method, request, deadline_s=self._deadline_s)
        return parsed(answer, raw, method)


def parsed(answer: Message, raw: bytes, what: str) -> Any:  # noqa: ANN401  a message of a class made at run time
    try:
        answer.ParseFromString(raw)
    except DecodeError:
        raise MessageWrong(f"{what}: the answer is no such message") from None
    return answer


def _container(each: Any) -> ListedContainer:  # noqa: ANN401  as above
    annotations = text_pairs(each.annotations, "replace")
    if CONTAINER in annotations:  # its readers refuse invalid UTF-8, and could not recognize the marks
        annotations[CONTAINER] = text_pairs(each.annotations, "surrogateescape")[CONTAINER]
    return ListedContainer(
        id=_text(each.id),
        sandbox_id=_text(each.pod_sandbox_id),
        name=_text(each.metadata.name),
        pod_uid=text_pairs(each.labels, "replace").get(POD_UID_LABEL, ""),
        exited=each.state == EXITED,
        running=each.state == RUNNING,
        annotations=annotations,
    )


class _Info(msgspec.Struct, frozen=True):
    """What containerd and CRI-O report beyond the interface."""

    pid: int = 0


class _Process(msgspec.Struct, frozen=True):
    capabilities: dict[str, list[str] | None] | None = None
    """By set: bounding, permitted and others."""


class _Spec(msgspec.Struct, frozen=True):
    process: _Process


class _InfoWithSpec(msgspec.Struct, frozen=True):
    """The same, with the OCI spec that the container was made from."""

    spec: _Spec = msgspec.field(name="runtimeSpec")


class _CdiDevice(msgspec.Struct, frozen=True):
    name: str = ""


class _Asked(msgspec.Struct, frozen=True):
    devices: list[_CdiDevice] | None = msgspec.field(name="CDI_devices", default=None)


class _InfoWithConfig(msgspec.Struct, frozen=True):
    """The same, with kubelet's request."""

    config: _Asked


def _read_info(info: bytes, type_: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(info, type=thread_safe(type_))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
