"""The allocation that counts for a pod on a node: the one verified for it, until the pod is gone.

Anyone who may write the pod can remove, break or restore its annotations, while the card stays in use. So of all
allocations that were verified for a pod's uid since this scheduler started, the one with the highest `gen` counts. A
pod without any that asks for devices is `unknown`. Every such change is flagged for the pod's owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import Allocation, NodeName, PodRequest, PodUid
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.codecs import encode_allocation
from partage_scheduler.objects import ApiPod

Notes: TypeAlias = tuple[str | None, str | None]
"""The allocation annotations of a pod: text and signature."""

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


class Unknown(Struct, frozen=True):
    """Request of a pod without a known allocation; None if the request can't be read either."""

    request: PodRequest | None


class Held(Struct, frozen=True):
    """Devices that a pod holds on its node."""

    allocation: Allocation
    unknown: Unknown | None = None
    """Its request, if its allocation is not known; what counts is then derived from it."""
    notes: Notes | None = None
    """Annotations that this was judged by; None: it was decided, and not seen yet."""


class Verified:
    """Judges the annotations on pods, and remembers which pods are flagged."""

    def __init__(
        self,
        trusted: Callable[[ApiPod], Allocation | None],
        asks: Callable[[ApiPod], Unknown | None],
        told: Callable[[ApiPod, str], None],
    ) -> None:
        """`trusted` reads signed allocations, `asks` requests of pods without one; `told` is called for each flag."""
        self._trusted, self._asks, self._told = trusted, asks, told
        self._flagged: dict[PodUid, str] = {}

    @property
    def flagged(self) -> Mapping[PodUid, str]:
        return self._flagged

    def forget(self, uid: PodUid) -> None:
        self._flagged.pop(uid, None)

    def held(self, pod: ApiPod, node: NodeName, before: Held | None, *, is_assumed: bool = False) -> Held:
        """What counts from now on; `before` is what counted so far, or was only assumed."""
        notes = notes_of(pod)
        if before is not None and notes == before.notes:
            return before
        if before is not None and _is_as_decided(before, notes[0]):
            return replace(before, notes=notes)
        return replace(self._judged(pod, node, notes[0], None if is_assumed else before), notes=notes)

    def _judged(self, pod: ApiPod, node: NodeName, text: str | None, before: Held | None) -> Held:
        found = None if text is None else self._of_this(pod, node)
        counted = None if before is None or before.unknown is not None else before.allocation
        if found is not None and (counted is None or not counted.containers or _is_newer(found, counted)):
            self.forget(pod.uid)
            return Held(found)
        if counted is None:
            return self._without(pod, node, before, is_noted=text is not None)
        if counted.containers:
            self._flag(pod, STRIPPED if text is None else BROKEN if found is None else OLDER)
        else:
            self._flag(pod, None if text is None else FORGED)
        return Held(counted)

    def _of_this(self, pod: ApiPod, node: NodeName) -> Allocation | None:
        found = self._trusted(pod)
        return found if found is not None and (found.pod, found.node) == (pod.uid, node) else None

    def _without(self, pod: ApiPod, node: NodeName, before: Held | None, *, is_noted: bool) -> Held:
        """For a pod without any verified allocation. Its request stays what it was when the pod was first seen."""
        unknown = self._asks(pod) if before is None else before.unknown
        nothing = Allocation(gen=1, pod=pod.uid, node=node, containers={})
        if unknown is None:
            self._flag(pod, FORGED if is_noted else None)
            return Held(nothing)
        self._flag(pod, UNREADABLE if unknown.request is None else UNKNOWN)
        return Held(nothing, unknown)

    def _flag(self, pod: ApiPod, words: str | None) -> None:
        if words is None:
            self.forget(pod.uid)
            return
        self._flagged[pod.uid] = words
        self._told(pod, words)


def _is_newer(found: Allocation, counted: Allocation) -> bool:
    """True also for the same allocation again."""
    return found.gen > counted.gen or found == counted


def notes_of(pod: ApiPod) -> Notes:
    annotations = pod.metadata.annotations
    return annotations.get(ALLOCATION), annotations.get(SIGNATURE)


def _is_as_decided(before: Held, text: str | None) -> bool:
    """Whether the pod is first seen with what was decided for it, so that it need not be verified."""
    if before.notes is not None:
        return False
    return not before.allocation.containers if text is None else text == encode_allocation(before.allocation)
