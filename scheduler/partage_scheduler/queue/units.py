"""What the queue moves as one: a pod, or the pods of a gang. And what it hands out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TypeAlias

from partage_plugins.codecs import read_gang
from partage_plugins.codecs.gangs import MOST_PODS
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import Gang, PodUid
from partage_scheduler.cluster.causes import NOTHING, Cause
from partage_scheduler.objects import ApiPod

Key: TypeAlias = "PodUid | Gang"
Order: TypeAlias = tuple[int, str, int]
"""What goes first: the higher priority, then the older, then what was offered before."""


class Place(Enum):
    """Where a unit is; always in exactly one place."""

    GATHERING = "gathering"
    """A gang of which too few pods are there."""
    READY = "ready"
    RESTING = "backing off"
    """It may fit now, but was tried a moment ago."""
    WAITING = "waiting"
    """It was tried, and nothing has happened since that concerns it."""
    FLYING = "in flight"
    """It was handed out, and what became of it has not been said."""


@dataclass(frozen=True)
class Waiting:
    pods: tuple[ApiPod, ...]
    """One, or those of a gang, which are bound all or none."""
    gang: Gang | None = None
    lacking: int = 0
    """So many pods of the gang are not there, and it has waited long for them: it must be told so, no more."""
    attempts: int = 0
    """How often it was tried before."""


class Unit:
    __slots__ = (
        "attempts",
        "causes",
        "changed",
        "failed",
        "flying",
        "jumped",
        "key",
        "late",
        "launched",
        "members",
        "namespace",
        "number",
        "place",
        "stirred",
        "turn",
        "until",
    )

    def __init__(self, key: Key, number: int, namespace: str) -> None:
        self.key, self.number, self.namespace = key, number, namespace
        self.members: dict[PodUid, ApiPod] = {}
        """In the order in which they are handed out."""
        self.place = Place.GATHERING
        self.turn = 0
        """Grows with each change of place: what was said of the place before is void."""
        self.attempts = 0
        self.until = 0.0
        """When it has rested enough, or a gang has waited long enough for its pods."""
        self.causes: frozenset[Cause] = NOTHING
        """Which things must happen before it is worth another try."""
        self.stirred = self.jumped = self.late = False
        """Whether one of them happened; whether it did not rest before its last try; whether its gang is overdue."""
        self.flying: set[PodUid] = set()
        self.launched = 0
        self.failed = self.changed = False
        """Since it was handed out: whether anybody failed, or is another than before."""

    @property
    def gang(self) -> Gang | None:
        return self.key if isinstance(self.key, Gang) else None

    @property
    def order(self) -> Order:
        """Its place in the line; a gang has the lowest priority and the greatest age of its pods, of many the first."""
        pods = tuple(islice(self.members.values(), MOST_PODS))
        oldest = min(pod.metadata.creation_timestamp or "" for pod in pods)
        return max(-pod.priority for pod in pods), oldest, self.number


def key_of(pod: ApiPod) -> Key:
    """The pod's gang, or itself. What is written wrongly is found where the pod is decided on."""
    try:
        return read_gang(pod.namespace, pod.metadata.annotations, pod.metadata.labels) or pod.uid
    except DecodeError:
        return pod.uid


def says_other(pod: ApiPod, before: ApiPod) -> bool:
    """Whether another decision may come out of it."""
    return (
        pod.spec != before.spec
        or pod.metadata.labels != before.metadata.labels
        or pod.metadata.annotations != before.metadata.annotations
        or pod.status.resource_claim_statuses != before.status.resource_claim_statuses
    )
