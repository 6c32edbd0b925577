"""What the container runtime answers, as types of ours. Pure.

Text is bytes on the wire (`schema` says why); it is decoded here alone, and what is no UTF-8 is replaced: it is
shown to people and never acted upon, but for labels and annotations, which make the answer wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec
from google.protobuf.message import DecodeError
from msgspec import Struct

from partage_base.cri.create_request import text_pairs
from partage_base.cri.errors import MessageWrong
from partage_base.cri.kubelet_schema import kubelet_message
from partage_cli.machine.runtime.plans import UID_LABEL

State = Literal["created", "running", "exited", "unknown"]
_STATES: Final[tuple[State, ...]] = ("created", "running", "exited", "unknown")
_READY: Final = 0


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
    pinned: bool = False
    """The runtime needs it itself, as sandboxes do; kubelet never removes it."""


class _Info(Struct, frozen=True):
    pid: int = 0


def read(kind: str, raw: bytes) -> Any:  # noqa: ANN401  a message of a class made at run time
    """Raises `MessageWrong` for what is no such message."""
    answer = kubelet_message(kind)()
    try:
        answer.ParseFromString(raw)
    except DecodeError:
        raise MessageWrong(f"{kind}: the bytes are no such message") from None
    return answer


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


_REQUIRED: Final = frozenset(("RuntimeReady", "NetworkReady"))


def why_not_ready(raw: bytes) -> str:
    """What the runtime says it lacks, or nothing; as for kubelet, its other conditions are for people."""
    conditions = read("StatusResponse", raw).status.conditions
    return "; ".join(
        f"{_text(each.type)} is not so: {_text(each.message) or _text(each.reason)}"
        for each in conditions
        if not each.status and _text(each.type) in _REQUIRED
    )


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
    return StoredImage(id=_text(each.id), names=names, digests=digests, bytes=each.size, pinned=each.pinned)


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
