"""Events on pods, for `kubectl describe pod`: why one waits, and where it was placed.

Equal messages about one pod are one event with a count (a series). Why a pod waits is sent before placements, which the
pod itself shows anyway: events of the latter kind are limited to a rate per second, are delayed under load, and are
dropped above a bound.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from partage_base.event_wait import set_within
from partage_base.kube import ApiServer, EventWriter, ObjectReference, Occurrence
from partage_plugins.api import PodUid
from partage_scheduler.api.outbox import Outbox, Pace
from partage_scheduler.objects import ApiPod

COMPONENT: Final = "partage-scheduler"
_MOST_WARNINGS: Final = 10_000
_MOST_NORMAL: Final = 2_000
_NORMAL_A_SECOND, _NORMAL_AT_ONCE = 50.0, 100
"""The default rate and burst of kube-scheduler's client, for all its requests."""
_EVERY_S: Final = 30.0
_PAUSE_S: Final = 0.05
"""Between two events under load."""


class Events:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        instance: str,
        sent: Callable[[str], None] = lambda _outcome: None,
        is_busy: Callable[[], bool] = lambda: False,
        every_s: float = _EVERY_S,
        normal_a_second: float = _NORMAL_A_SECOND,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`is_busy`: pods wait to be bound, which comes first. `sent` is called with `sent`, `counted` or `dropped`.

        `every_s` is the least interval of repeated warnings about a pod; `normal_a_second` the rate of Normal events.
        """
        self._sent, self._is_busy, self._clock, self._sleep = sent, is_busy, clock, sleep
        self._writer = EventWriter(
            server, component=COMPONENT, instance=instance, first_s=0.5, most_s=15.0, sleep=sleep
        )
        self._warnings: Outbox[tuple[PodUid, str], Occurrence] = Outbox(most=_MOST_WARNINGS, every_s=every_s)
        self._normal: OrderedDict[PodUid, Occurrence] = OrderedDict()
        self._pace = Pace(normal_a_second, at_once=_NORMAL_AT_ONCE)
        self._news = asyncio.Event()

    def failed(self, pod: ApiPod, why: str, *, reason: str = "FailedScheduling") -> None:
        before = self._warnings.dropped
        self._warnings.put((pod.uid, reason), Occurrence.of(_about(pod), "Warning", reason, why, "Scheduling"))
        for _ in range(self._warnings.dropped - before):
            self._sent("dropped")
        self._news.set()

    def doubted(self, pod: ApiPod, words: str) -> None:
        """The pod's annotations differ from the allocation that counts for it."""
        self.failed(pod, words, reason="AllocationNotAsGiven")

    def scheduled(self, pod: ApiPod, node: str) -> None:
        self._warnings.withdraw((pod.uid, "FailedScheduling"))
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self.happened(pod, "Scheduled", note, "Scheduling")

    def happened(self, pod: ApiPod, reason: str, note: str, action: str) -> None:
        """Records an act on a pod that is on a node."""
        if len(self._normal) >= _MOST_NORMAL:
            self._normal.popitem(last=False)
            self._sent("dropped")
        self._normal[pod.uid] = Occurrence.of(_about(pod), "Normal", reason, note, action)
        self._news.set()

    def withdraw(self, uid: PodUid) -> None:
        self._warnings.withdraw((uid, "FailedScheduling"))

    async def run(self) -> None:
        while True:
            now = self._clock()
            if (what := self._next(now)) is not None:
                self._sent(await self._writer.write(what, in_series=what.type == "Warning"))
                if self._is_busy():
                    await self._sleep(_PAUSE_S)
            else:
                await self._wait(self._due(now), now)

    def _next(self, now: float) -> Occurrence | None:
        if (found := self._warnings.take(now)) is not None:
            return found[1]
        if not self._normal or self._pace.due > now:
            return None
        self._pace.done(now)
        return self._normal.popitem(last=False)[1]

    def _due(self, now: float) -> float | None:
        """When there is something to send; None if only a new event can add something."""
        warning = self._warnings.due(now)
        if not self._normal:
            return warning
        return self._pace.due if warning is None else min(self._pace.due, warning)

    async def _wait(self, due: float | None, now: float) -> None:
        self._news.clear()
        await set_within(self._news, None if due is None else max(0.01, due - now))


def _about(pod: ApiPod) -> ObjectReference:
    return ObjectReference(kind="Pod", api_version="v1", namespace=pod.namespace, name=pod.name, uid=pod.uid)
