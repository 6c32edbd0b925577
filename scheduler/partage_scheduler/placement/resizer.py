"""Resizes pods on nodes: each request is decided on, booked, and written on the pod as a new allocation.

The booking is undone only when it is certain that the write will not take effect. The next leader reads what is on the
pod.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.kube import KubeError
from partage_plugins.api import PodUid
from partage_plugins.api.keys import RESIZE, RESIZED
from partage_plugins.codecs.resize import GRANTED, REFUSED, WAITS
from partage_scheduler.api import Events, StatusWriter
from partage_scheduler.authority import Authority
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.core import Core
from partage_scheduler.metrics import Figures
from partage_scheduler.objects import ApiPod
from partage_scheduler.placement.allocation_writer import AllocationWriter
from partage_scheduler.resize import Granted, Stays
from partage_scheduler.resize.outcome import quoted, said_of

EVERY_S: Final = 1.0
AT_ONCE: Final = 16
"""Requests that are decided on together; those looked at longest ago come first."""
_log = structlog.get_logger()


class Resizer:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        core: Core,
        writer: AllocationWriter,
        *,
        events: Events,
        status: StatusWriter,
        authority: Authority,
        figures: Figures,
        ours: str | None,
    ) -> None:
        """`ours` is our schedulerName; None: pods of other schedulers have our allocations, too."""
        self._core, self._writer, self._events, self._status = core, writer, events, status
        self._authority, self._figures, self._ours = authority, figures, ours
        self._looked: dict[PodUid, float] = {}
        """When each pod was looked at last."""
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            if self._authority.may_decide():
                await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        placed_pods = [placed for placed in self._core.cluster.placed_pods.with_affinity() if self._is_open(placed)]
        self._looked = {placed.pod.uid: self._looked.get(placed.pod.uid, 0.0) for placed in placed_pods}
        turn = sorted(placed_pods, key=lambda placed: (self._looked[placed.pod.uid], -placed.pod.priority))
        await asyncio.gather(*[self._resize(placed) for placed in turn[:AT_ONCE]])

    def _is_open(self, placed: PlacedPod) -> bool:
        """Whether a pod of ours has a resize request that was neither granted nor refused."""
        pod = placed.pod
        wish = pod.metadata.annotations.get(RESIZE)
        if wish is None or pod.is_going or placed.assumed:
            return False
        return self._ours in {None, pod.spec.scheduler_name} and said_of(pod, wish)[0] not in {GRANTED, REFUSED}

    async def _resize(self, placed: PlacedPod) -> None:
        self._looked[placed.pod.uid] = now = time.monotonic()
        verdict = self._core.resizes.decide(placed, now)
        match verdict:
            case Granted():
                await self._grant(verdict)
            case Stays(pod, why, waits):
                await self._tell(pod, WAITS if waits else REFUSED, why)
            case None:
                await self._tell(placed.pod, GRANTED, f"gen {placed.allocation.gen} of its allocation")

    async def _grant(self, granted: Granted) -> None:
        pod = granted.pod
        why = await self._writer.write(pod, granted.wanted)
        if why is None:
            _log.info("a pod was resized", pod=f"{pod.namespace}/{pod.name}", gen=granted.wanted.gen)
            await self._tell(pod, GRANTED, f"gen {granted.wanted.gen} of its allocation")
            return
        cluster_events = self._core.cluster.rebook(pod.uid, granted.booked, granted.before)
        self._core.queue.happened(cluster_events, time.monotonic())
        self._figures.resizes.add("failed")
        self._repeats.say("a pod was not resized", pod=f"{pod.namespace}/{pod.name}", why=why)

    async def _tell(self, pod: ApiPod, reason: str, why: str) -> None:
        """Reports the outcome on the pod, once for each request and outcome."""
        wish = pod.metadata.annotations[RESIZE]
        if said_of(pod, wish)[0] == reason:
            return
        message, status = f"{quoted(wish)}{why}", "True" if reason == GRANTED else "False"
        try:
            found = await self._status.condition(pod, RESIZED, reason, message, status=status)
        except KubeError as error:  # reported in the next pass
            self._figures.erred(error)
            return
        self._core.event_handlers.pods.changed(found)
        self._figures.resizes.add(reason.lower())
        if reason == GRANTED:
            self._events.happened(pod, "Resized", f"Resized: {message}", "Resizing")
        else:
            self._events.failed(pod, message, reason=f"Resize{reason}")
