"""What counts for a pod on a node: the allocation that was verified for it, until it is gone.

Annotations may be taken off, broken or put back by anyone who may write the pod; the card is in use all the same. So of
all allocations that were verified for a pod's uid since this scheduler began, the one of the highest `gen` counts. A
pod for which none was, and which asks for devices, is `unknown`. Every such change is flagged, for the pod's owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from partage_plugins.vocabulary import Allocation, NodeName, PodUid
from partage_scheduler.cluster.seats import Seat, Unknown, notes_of, nothing_for
from partage_scheduler.objects import ApiPod

_AGAIN: Final = "delete the pod to have it placed again, and see who writes alloc.partage.dev/ annotations"
FORGED: Final = f"its allocation is not signed by us, or for another pod or node: it counts for nothing; {_AGAIN}"
STRIPPED: Final = f"its allocation was taken off: what was verified before counts until the pod is gone; {_AGAIN}"
BROKEN: Final = (
    "its allocation is no longer signed by us, or for another pod or node: "
    f"what was verified before counts until the pod is gone; {_AGAIN}"
)
OLDER: Final = (
    f"its allocation was replaced by one that is not newer: the newer one counts until the pod is gone; {_AGAIN}"
)
UNKNOWN: Final = (
    "it asks for shares and has no allocation that is signed by us for this pod and node: "
    f"its request counts on every card of the node until it is gone; {_AGAIN}"
)
UNREADABLE: Final = (
    "it asks for shares in words that can't be read and has no allocation that is signed by us for this pod and node: "
    f"its node takes no new shares until it is gone; {_AGAIN}"
)


class Held(NamedTuple):
    """What a pod on a node holds there of devices."""

    allocation: Allocation
    unknown: Unknown | None = None
    """What it asks for, where no allocation says what it was given; the allocation follows from that then."""


class Verified:
    """Judges what is written on pods, and remembers which pods are flagged."""

    def __init__(
        self,
        trusted: Callable[[ApiPod], Allocation | None],
        asks: Callable[[ApiPod], Unknown | None],
        told: Callable[[ApiPod, str], None],
    ) -> None:
        """`trusted` reads signed allocations, `asks` the requests of pods without; `told` hears of each flag."""
        self._trusted, self._asks, self._told = trusted, asks, told
        self._flagged: dict[PodUid, str] = {}

    @property
    def flagged(self) -> Mapping[PodUid, str]:
        return self._flagged

    def forget(self, uid: PodUid) -> None:
        self._flagged.pop(uid, None)

    def held(self, pod: ApiPod, node: NodeName, seat: Seat | None) -> Held:
        """What counts from now on; `seat` is what counted so far."""
        text = notes_of(pod)[0]
        found = None if text is None else self._of_this(pod, node)
        counted = None if seat is None or seat.unknown is not None else seat.allocation
        if found is not None and (counted is None or not counted.containers or _is_newer(found, counted)):
            self.forget(pod.uid)
            return Held(found)
        if counted is not None and counted.containers:
            return self._as_before(pod, counted, text, found)
        if seat is None or seat.unknown is not None:
            return self._without(pod, node, seat, is_noted=text is not None)
        self._flag(pod, None if text is None else FORGED)
        return Held(seat.allocation)

    def _of_this(self, pod: ApiPod, node: NodeName) -> Allocation | None:
        found = self._trusted(pod)
        return found if found is not None and (found.pod, found.node) == (pod.uid, node) else None

    def _as_before(self, pod: ApiPod, counted: Allocation, text: str | None, found: Allocation | None) -> Held:
        self._flag(pod, STRIPPED if text is None else BROKEN if found is None else OLDER)
        return Held(counted)

    def _without(self, pod: ApiPod, node: NodeName, seat: Seat | None, *, is_noted: bool) -> Held:
        """Nothing was ever verified. What the pod asked for when it was first seen stays what it asks for."""
        unknown = self._asks(pod) if seat is None else seat.unknown
        if unknown is None:
            self._flag(pod, FORGED if is_noted else None)
            return Held(nothing_for(pod, node))
        self._flag(pod, UNREADABLE if unknown.request is None else UNKNOWN)
        return Held(nothing_for(pod, node) if seat is None else seat.allocation, unknown)

    def _flag(self, pod: ApiPod, words: str | None) -> None:
        if words is None:
            self.forget(pod.uid)
            return
        self._flagged[pod.uid] = words
        self._told(pod, words)


def _is_newer(found: Allocation, counted: Allocation) -> bool:
    """True also where it is the same again."""
    return found.gen > counted.gen or found == counted
