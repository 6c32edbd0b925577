"""What is queued as one, a pod or the pods of a gang, and what the queue hands out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TypeAlias

from partage_plugins.api import Gang, PodUid
from partage_plugins.codecs.gangs import MOST_PODS
from partage_scheduler.cluster.cluster_events import NOTHING, ClusterEvent
from partage_scheduler.objects import ApiPod

Key: TypeAlias = "PodUid | Gang"
Order: TypeAlias = tuple[int, str, int]
"""Sort key: higher priority first, then the older, then the one offered earlier."""


class Place(Enum):
    """State of a unit, which is always in exactly one."""

    GATHERING = "gathering"
    """A gang with too few pods so far."""
    READY = "ready"
    RESTING = "backing off"
    """It may fit now, but its back-off is not over."""
    WAITING = "waiting"
    """It was tried, and no relevant cluster event has occurred since."""
    FLYING = "in flight"
    """It was handed out, and its outcome has not been reported yet."""


@dataclass(frozen=True)
class Waiting:
    pods: tuple[ApiPod, ...]
    """One pod, or those of a gang, which are bound all or none."""
    gang: Gang | None = None
    lacking: int = 0
    """Number of pods that an overdue gang lacks: it is only to be reported, not placed."""
    attempts: int = 0
    """Number of earlier tries."""


class QueuedGroup:
    __slots__ = (
        "attempts",
        "changed",
        "cluster_events",
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
        """Incremented with each change of place; entries with an older value are stale."""
        self.attempts = 0
        self.until = 0.0
        """When its back-off is over, or the time for which a gang waits for its pods."""
        self.cluster_events: frozenset[ClusterEvent] = NOTHING
        """Cluster events that make it worth another try."""
        self.stirred = self.jumped = self.late = False
        """Whether one of them occurred; whether its last try skipped the back-off; whether its gang is overdue."""
        self.flying: set[PodUid] = set()
        self.launched = 0
        self.failed = self.changed = False
        """Whether any of its pods failed, or changed, since it was handed out."""

    @property
    def gang(self) -> Gang | None:
        return self.key if isinstance(self.key, Gang) else None

    @property
    def order(self) -> Order:
        """Its sort key; a gang has the lowest priority and the greatest age among its first `MOST_PODS` pods."""
        pods = tuple(islice(self.members.values(), MOST_PODS))
        oldest = min(pod.metadata.creation_timestamp or "" for pod in pods)
        return max(-pod.priority for pod in pods), oldest, self.number


def says_other(pod: ApiPod, before: ApiPod) -> bool:
    """Whether the change may lead to another decision."""
    return (
        pod.spec != before.spec
        or pod.metadata.labels != before.metadata.labels
        or pod.metadata.annotations != before.metadata.annotations
        or pod.status.resource_claim_statuses != before.status.resource_claim_statuses
    )
