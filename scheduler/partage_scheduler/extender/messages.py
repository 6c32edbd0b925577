"""The messages of kube-scheduler's extender protocol, as k8s.io/kube-scheduler/extender/v1 spells them.

Keys are capitalized where upstream's types have no JSON tags. Nodes are sent by name only (`nodeCacheCapable: true`);
of pods only the fields that placing depends on are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from partage_plugins.api import NodeName, PodUid
from partage_scheduler.errors import SchedulerError
from partage_scheduler.objects import ApiPod

T = TypeVar("T")


class Unreadable(SchedulerError):
    """The body does not have the type that its path requires."""


class Message(Struct, frozen=True, gc=False, kw_only=True, rename="pascal", omit_defaults=True):
    """Ignores unknown fields and omits empty ones."""


class Args(Message, frozen=True, kw_only=True):
    """For filter: a pod, and the remaining nodes."""

    pod: ApiPod
    node_names: tuple[NodeName, ...] | None = None
    """None if nodes were not sent by name."""


class Uid(Struct, frozen=True, gc=False):
    uid: PodUid


class KnownPod(Struct, frozen=True, gc=False):
    """A pod that filter was called for."""

    metadata: Uid


class PrioritizeArgs(Message, frozen=True, kw_only=True):
    """For prioritize, which comes after filter."""

    pod: KnownPod
    node_names: tuple[NodeName, ...] | None = None


class FilterResult(Message, frozen=True, kw_only=True, omit_defaults=False):
    node_names: tuple[NodeName, ...] = ()
    failed_nodes: Mapping[NodeName, str] = {}
    failed_and_unresolvable_nodes: Mapping[NodeName, str] = {}
    """Nodes where it would not fit even if pods left."""
    error: str = ""
    """Why there is no result; the pod is tried again."""


class Host(Message, frozen=True, kw_only=True, omit_defaults=False):
    """A node's score, from 0 to 10; a node that is not listed scores 0."""

    host: NodeName
    score: int


class BindingArgs(Message, frozen=True, kw_only=True):
    pod_name: str
    pod_namespace: str
    pod_uid: PodUid = field(name="PodUID")
    node: NodeName


class Result(Message, frozen=True, kw_only=True, omit_defaults=False):
    error: str = ""


class MetaPod(Message, frozen=True, kw_only=True):
    uid: PodUid = field(name="UID")


class MetaVictims(Message, frozen=True, kw_only=True, omit_defaults=False):
    """The victims on one node."""

    pods: tuple[MetaPod, ...] = ()
    violations: int = field(default=0, name="NumPDBViolations")
    """How many PodDisruptionBudgets that violates."""


class PreemptionArgs(Message, frozen=True, kw_only=True):
    """The pod to make room for, and the victims proposed for each node."""

    pod: ApiPod
    node_name_to_meta_victims: Mapping[NodeName, MetaVictims] | None = None


class PreemptionResult(Message, frozen=True, kw_only=True, omit_defaults=False):
    """The nodes where preemption makes room, each with all its victims."""

    node_name_to_meta_victims: Mapping[NodeName, MetaVictims] = {}


def read(body: bytes, type_: type[T]) -> T:
    """Raises `Unreadable`, with the path."""
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"the body can't be read as {getattr(type_, '__name__', type_)}: {error}") from None


def write(message: object) -> bytes:
    return msgspec.json.encode(message)
