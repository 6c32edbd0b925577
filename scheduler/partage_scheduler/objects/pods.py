"""A pod as the scheduler reads it."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import force_setattr

from partage_plugins.api import ContainerName, Gang, Namespace, Pod, PodContainer, PodName, PodRef, PodUid, Role
from partage_plugins.codecs import read_gang
from partage_plugins.errors import DecodeError
from partage_scheduler.objects.base import ApiObject, Meta
from partage_scheduler.objects.excess import excess
from partage_scheduler.objects.specs import Container, PodSpec, PodStatus
from partage_scheduler.objects.truncated import (
    first_of_metadata,
    first_of_spec,
    first_of_status,
    with_read_annotations,
)

TERMINAL: Final = frozenset(("Succeeded", "Failed"))
_NO_ROOM: Final = "OutOf"
"""Prefix of kubelet's reason for such a rejection; the resource follows."""
_TEXT: Final = msgspec.json.Encoder()


class ApiPod(ApiObject, frozen=True, kw_only=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    excess: str = ""
    """A message for the owner of a pod beyond the size limits, of which only a part is kept (`firsts`).

    It is about the pod as it was received; a copy, which has less, keeps the message.
    """

    def __post_init__(self) -> None:
        """Keeps only what is used, within limits, as soon as the pod is decoded."""
        metadata, spec, status = self.metadata, self.spec, self.status
        found = excess(metadata, spec, self.bytes)
        if found:
            force_setattr(self, "excess", self.excess or found)
            force_setattr(self, "metadata", first_of_metadata(metadata))
            force_setattr(self, "spec", first_of_spec(metadata.namespace, spec))
            force_setattr(self, "status", first_of_status(status))
        elif spec.node_name and metadata.annotations:
            force_setattr(self, "metadata", with_read_annotations(metadata))

    @property
    def bytes(self) -> int:
        """Length of its JSON text."""
        return len(_TEXT.encode((self.metadata, self.spec, self.status)))

    @property
    def uid(self) -> PodUid:
        return PodUid(self.metadata.uid)

    @property
    def node(self) -> str:
        """Empty if it is not bound."""
        return self.spec.node_name

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_terminal(self) -> bool:
        """Whether it has terminated and holds nothing any more."""
        return self.status.phase in TERMINAL

    @property
    def is_refused(self) -> bool:
        """Whether its kubelet rejected it for lack of resources."""
        return self.status.phase == "Failed" and self.status.reason.startswith(_NO_ROOM) and bool(self.node)

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted; until it is gone it holds what it held."""
        return self.metadata.deletion_timestamp is not None


def seen(pod: ApiPod) -> Pod:
    """The pod as plugins see it; init containers first, in the order in which they start."""
    meta, spec = pod.metadata, pod.spec
    ref = PodRef(namespace=Namespace(meta.namespace), name=PodName(meta.name), uid=pod.uid)
    first = [_shown(each, role_of(each)) for each in spec.init_containers]
    apps = [_shown(each, "app") for each in spec.containers]
    return Pod(ref=ref, labels=meta.labels, annotations=meta.annotations, containers=(*first, *apps))


def gang_of(pod: ApiPod) -> Gang | None:
    """The pod's gang; None if it has none, or a malformed one."""
    try:
        return read_gang(pod.namespace, pod.metadata.annotations, pod.metadata.labels)
    except DecodeError:
        return None


def role_of(init: Container) -> Role:
    """The role of an init container; one that always restarts runs beside the app containers."""
    return "sidecar" if init.restart_policy == "Always" else "init"


def _shown(each: Container, role: Role) -> PodContainer:
    return PodContainer(
        name=ContainerName(each.name),
        role=role,
        limits=each.resources.limits,
        requests=each.resources.requests,
        variables=tuple(variable.name for variable in each.env),
    )
