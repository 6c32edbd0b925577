"""Tracks the holds on this machine's cards, from a container's create until its grants are free again.

A hold is *creating* while the process that creates the container runs, then *running* until the broker reports that
nothing is left of its claim. A container that ended may be restarted, which its engine tries only once: so its hold is
*kept* for a while, unless the engine has removed the container. Placing and holding are one step, so of two creates the
second sees the first. No I/O; single-threaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from partage_oci.messages import Stage
from partage_oci.placement import GEN, Placement
from partage_oci.records import EngineRecord
from partage_oci.shortage import NoRoom
from partage_oci.words import CONTAINER, SHOWN
from partage_plugins.api import GPU, Allocation, NodeName, PodRequest, PodUid
from partage_plugins.errors import Refused


class DoesNotFit(Refused):
    """There is no room now, but there may be when another container has ended."""


class Hold(Struct, frozen=True, kw_only=True):
    record: EngineRecord
    allocation: Allocation
    stage: Stage
    until_s: float = 0.0
    """When a kept hold expires."""


class Holds:
    def __init__(self, placement: Placement, node: NodeName, *, restart_hold_s: float) -> None:
        self._placement, self._node, self._restart_hold_s = placement, node, restart_hold_s
        self._holds = dict[str, Hold]()

    def __iter__(self) -> Iterator[Hold]:
        return iter(tuple(self._holds.values()))

    def of(self, id_: str) -> Hold | None:
        return self._holds.get(id_)

    def find(self, record: EngineRecord) -> None:
        """Restore a hold of an earlier agent."""
        containers = {CONTAINER: {GPU.name: record.grants}}
        allocation = Allocation(gen=GEN, pod=PodUid(record.id), node=self._node, containers=containers)
        self._placement.hold(allocation)
        stage: Stage = "running" if record.is_created else "creating"
        self._holds[record.id] = Hold(record=record, allocation=allocation, stage=stage)

    def place(self, request: PodRequest, record: Callable[..., EngineRecord], now_s: float) -> EngineRecord:
        """Place one more create, reusing the hold kept for this container; raises `Refused` if there is no room.

        `record` builds the record from its number and grants.
        """
        uid = request.pod.uid
        before = self._holds.get(uid)
        if before is not None and before.stage != "kept":
            raise Refused(f"container {uid[:SHOWN]} is being created, or has not ended")
        if before is not None:
            self._placement.release(uid)
        try:
            found = self._placement.place(request)
            why = self._why(request, found, now_s) if isinstance(found, NoRoom) else ""
        except BaseException:
            self._put_back(before)
            raise
        if isinstance(found, NoRoom):
            self._put_back(before)
            raise Refused(why) if found.lasts else DoesNotFit(why)
        n = 1 if before is None else before.record.n + 1
        made = record(n=n, grants=found.given(CONTAINER, GPU))
        self._holds[uid] = Hold(record=made, allocation=found, stage="creating")
        return made

    def creator_ended(self, id_: str, *, is_created: bool) -> EngineRecord:
        """The creating process has ended: the hold now lasts until the broker releases the claim.

        Without a container, no hold is kept for a restart.
        """
        hold = self._holds[id_]
        record = replace(hold.record, is_created=is_created)
        self._holds[id_] = replace(hold, record=record, stage="running")
        return record

    def over(self, id_: str, now_s: float, *, is_removed: bool) -> bool:
        """The broker has released the claim; returns True if the hold ended, False if it is kept for a restart."""
        hold = self._holds[id_]
        if not hold.record.is_created or is_removed or not self._restart_hold_s:
            self._end(id_)
            return True
        self._holds[id_] = replace(hold, stage="kept", until_s=now_s + self._restart_hold_s)
        return False

    def expire(self, now_s: float, is_removed: Callable[[EngineRecord], bool]) -> tuple[str, ...]:
        """End kept holds that have expired or whose containers are removed; returns their ids."""
        gone = [each for each in self if each.stage == "kept" and (each.until_s <= now_s or is_removed(each.record))]
        for each in gone:
            self._end(each.record.id)
        return tuple(each.record.id for each in gone)

    def _end(self, id_: str) -> None:
        del self._holds[id_]
        self._placement.release(PodUid(id_))

    def _put_back(self, before: Hold | None) -> None:
        if before is not None:
            self._placement.hold(before.allocation)

    def _why(self, request: PodRequest, found: NoRoom, now_s: float) -> str:
        """The reason; if room is only kept for restarts, also for which containers and how long."""
        kept = sorted((each for each in self if each.stage == "kept"), key=lambda each: each.until_s)
        others = [each for each in kept if each.record.id != request.pod.uid]
        freed = list[Hold]()
        fits = False
        while others and not fits and not found.lasts:
            freed.append(others.pop(0))
            self._placement.release(freed[-1].allocation.pod)
            fits = self._placement.why_not(request) is None
        for each in freed:
            self._placement.hold(each.allocation)
        if not fits:
            return found.why
        last, ids = freed[-1], " ".join(each.record.id[:SHOWN] for each in freed)
        many = f"containers {ids}, in case they are" if len(freed) > 1 else f"container {ids}, in case it is"
        left_s = max(1, round(last.until_s - now_s))
        return f"{found.why}; room is kept {left_s} s longer for {many} started again, and `docker rm {ids}` frees it"
