"""Suspends pods in place of deleting them, and resumes them when their room is free again.

A pod is suspended by its signed allocation. Its node takes the memory off the card and reports so on its Lease; only
then the pod for which it is suspended gets the room. If the node can't, or does not report in time, the pod is deleted
after all. Everything but what is about to be written is on the pods and the Leases, so the next leader goes on.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import structlog
from msgspec.structs import replace

from partage_base.daemon.logs import Repeats
from partage_plugins.api import CardId, NodeName, PodUid
from partage_scheduler.api import Events
from partage_scheduler.authority import Authority
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.core import Core
from partage_scheduler.metrics import Figures
from partage_scheduler.placement.allocation_writer import AllocationWriter
from partage_scheduler.placement.preemptor import Preemptor
from partage_scheduler.preemption import Suspension
from partage_scheduler.resize.room import against_resuming

EVERY_S: Final = 1.0
AT_ONCE: Final = 32
"""Pods that are looked at in one pass for whether they can be resumed; those of other nodes follow in the next."""
PATIENCE_S: Final = 120.0
"""Time for a node to report. Work that runs has ten seconds to end; then the memory is copied."""
_log = structlog.get_logger()


class Suspender:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        core: Core,
        writer: AllocationWriter,
        preemptor: Preemptor,
        *,
        events: Events,
        authority: Authority,
        figures: Figures,
        utc: Callable[[], float] = time.time,
    ) -> None:
        self._core, self._writer, self._preemptor, self._events = core, writer, preemptor, events
        self._authority, self._figures, self._utc = authority, figures, utc
        self._last_node = NodeName("")
        """The last node whose suspended pods were looked at."""
        self._told: dict[PodUid, int] | None = None
        """The gen of each pod that is reported as suspended, with its event sent; None until the first look."""
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            if self._authority.may_decide():
                await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        await asyncio.gather(*[self._suspend(each) for each in self._core.preemption.suspensions()])
        placed_pods = [placed for placed in self._core.cluster.placed_pods.suspended() if not placed.pod.is_going]
        self._tell(placed_pods)
        waiting = [placed for placed in placed_pods if not self._is_for_another(placed)]
        await asyncio.gather(*[self._write_resumed(each) for each in self._resumed(waiting)])

    # ---- Suspending --------------------------------------------------------------------------------------------------

    async def _suspend(self, suspension: Suspension) -> None:
        pod, booked = suspension.pod, suspension.booked
        why = await self._writer.write(pod, replace(booked, gen=booked.gen + 1))
        if why is not None:  # its preemptor is tried again, and chooses again
            self._rebook(pod.uid, suspension, why)

    def _rebook(self, uid: PodUid, suspension: Suspension, why: str) -> None:
        cluster_events = self._core.cluster.rebook(uid, suspension.booked, suspension.before)
        self._core.queue.happened(cluster_events, time.monotonic())
        pod = suspension.pod
        self._repeats.say("a pod was not suspended or resumed", pod=f"{pod.namespace}/{pod.name}", why=why)

    def _tell(self, placed_pods: Iterable[PlacedPod]) -> None:
        """Sends an event for each pod that its node reports as suspended; not again for those of an earlier leader."""
        known, self._told = self._told, {}
        for placed in placed_pods:
            pod, suspended, gen = placed.pod, placed.allocation.suspended, placed.allocation.gen
            if suspended is None or not self._core.cluster.suspensions.is_off(placed):
                continue
            self._told[pod.uid] = gen
            if known is not None and known.get(pod.uid) != gen:
                self._figures.removed.add("suspended")
                note = f"Suspended for pod {suspended.by} on node {placed.node}, until its room there is free again"
                self._events.happened(pod, "Suspended", note, "Suspending")

    def _is_for_another(self, placed: PlacedPod) -> bool:
        """Whether the pod for which it is suspended waits for its room; it is deleted for that if it keeps the room."""
        suspended, cluster, pod = placed.allocation.suspended, self._core.cluster, placed.pod
        if suspended is None or not cluster.waits_on(suspended.by, placed.node):
            return False
        report = cluster.suspensions.report(placed)
        if report is not None and report.is_done:
            return True
        why = "" if report is None else report.why
        if not why and self._utc() - suspended.at > PATIENCE_S:
            why = f"its node did not report within {PATIENCE_S:g} s that it is"
        if why and not self._core.preemption.finder.is_sent_away(pod.uid):
            self._preemptor.evict(pod, suspended.by, placed.node, f"it could not be suspended: {why}")
        return True

    # ---- Resuming ----------------------------------------------------------------------------------------------------

    def _resumed(self, placed_pods: Iterable[PlacedPod]) -> list[Suspension]:
        """Books those whose room is free, on one node after another. One that waits keeps later ones off its cards."""
        awaited, booked, looks = set[CardId](), list[Suspension](), 0
        for placed in self._in_turns(placed_pods):
            cards = {usage.card for usage in placed.usages}
            if not cards.isdisjoint(awaited):
                continue
            if looks >= AT_ONCE and placed.node != self._last_node:
                break
            looks, self._last_node = looks + 1, placed.node
            if against_resuming(self._core.cycle, placed, time.monotonic()) is not None:
                awaited |= cards
            else:
                booked.append(self._book_resumed(placed))
        return booked

    def _in_turns(self, placed_pods: Iterable[PlacedPod]) -> Iterator[PlacedPod]:
        """Node after node, from the one after the last; of a node's pods the first in turn first."""
        on: dict[NodeName, list[PlacedPod]] = {}
        for placed in sorted(placed_pods, key=_turn):
            on.setdefault(placed.node, []).append(placed)
        nodes = sorted(on)
        first = bisect_right(nodes, self._last_node)
        return (placed for node in nodes[first:] + nodes[:first] for placed in on[node])

    def _book_resumed(self, placed: PlacedPod) -> Suspension:
        before = placed.allocation
        booked = replace(before, suspended=None)
        self._core.cluster.rebook(placed.pod.uid, before, booked)
        return Suspension(placed.pod, before, booked)

    async def _write_resumed(self, resumed: Suspension) -> None:
        pod, booked = resumed.pod, resumed.booked
        why = await self._writer.write(pod, replace(booked, gen=booked.gen + 1))
        if why is None:
            _log.info("a pod is resumed", pod=f"{pod.namespace}/{pod.name}", node=pod.node)
            self._events.happened(pod, "Resumed", f"Resumed on node {pod.node}: its room is free again", "Resuming")
        else:
            self._rebook(pod.uid, resumed, why)


def _turn(placed: PlacedPod) -> tuple[int, int, str]:
    """The higher priority first, then the one that is suspended longest."""
    suspended = placed.allocation.suspended
    return -placed.pod.priority, 0 if suspended is None else suspended.at, placed.pod.uid
