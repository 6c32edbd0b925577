"""Events on pods, for those who type `kubectl describe pod`: why one waits, and where one went.

The same words about the same pod are one event that counts (a series). Why a pod waits is told before where one went;
that one is bound is written on it anyway, so those events take no more of the API server than some in a second, under
load they wait, and beyond a bound they are dropped.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog

from partage_base.kube import ApiServer, Backoff, KubeError, NotFound, micro_time
from partage_plugins.vocabulary import PodUid
from partage_scheduler.api.outbox import Outbox, Pace
from partage_scheduler.objects import ApiPod

COMPONENT: Final = "partage-scheduler"
_MOST_WARNINGS: Final = 10_000
_MOST_NORMAL: Final = 2_000
_NORMAL_A_SECOND, _NORMAL_AT_ONCE = 50.0, 100
"""What kube-scheduler's client is allowed by default, for all that it asks for."""
_EVERY_S: Final = 30.0
_SERIES: Final = 2_000
"""So many events are remembered as begun; what says the same after that is a new one."""
_LONGEST_NOTE: Final = 1_024
_LONGEST_BEGINNING: Final = 230
"""Of a name, which with what comes behind it may have 253 letters."""
_TRIES: Final = 3
_PAUSE_S: Final = 0.05
"""Between two events under load."""
_log = structlog.get_logger()


class _About(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    uid: str
    kind: str = "Pod"
    api_version: str = "v1"


class _EventMeta(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class _Event(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    metadata: _EventMeta
    event_time: str
    type: str
    reason: str
    note: str
    regarding: _About
    reporting_instance: str
    action: str
    reporting_controller: str = COMPONENT
    api_version: str = "events.k8s.io/v1"
    kind: str = "Event"


class _Words(msgspec.Struct, frozen=True):
    about: _About
    type: str
    reason: str
    note: str
    action: str = "Scheduling"


class Events:
    """Of one scheduler, about any pod."""

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
        """`is_busy`: pods wait to be bound, which comes first. `sent` is told: `sent`, `counted` or `dropped`.

        `every_s` is for what is said again of the same pod; `normal_a_second` for all that only tells what was done.
        """
        self._server, self._instance, self._sent, self._is_busy = server, instance, sent, is_busy
        self._clock, self._sleep = clock, sleep
        self._warnings: Outbox[tuple[PodUid, str], _Words] = Outbox(most=_MOST_WARNINGS, every_s=every_s)
        self._normal: OrderedDict[PodUid, _Words] = OrderedDict()
        self._pace = Pace(normal_a_second, at_once=_NORMAL_AT_ONCE)
        self._series: OrderedDict[_Words, tuple[str, int]] = OrderedDict()
        self._news = asyncio.Event()
        self._backoff = Backoff(first_s=0.5, most_s=15.0, random=random.random)

    def failed(self, pod: ApiPod, why: str, *, reason: str = "FailedScheduling") -> None:
        """The pod waits, for this reason."""
        before = self._warnings.dropped
        self._warnings.put((pod.uid, reason), _words(pod, "Warning", reason, why))
        for _ in range(self._warnings.dropped - before):
            self._sent("dropped")
        self._news.set()

    def doubted(self, pod: ApiPod, words: str) -> None:
        """Something else stands on the pod than what counts for it."""
        self.failed(pod, words, reason="AllocationNotAsGiven")

    def scheduled(self, pod: ApiPod, node: str) -> None:
        """The pod is on a node."""
        self._warnings.withdraw((pod.uid, "FailedScheduling"))
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self.happened(pod, "Scheduled", note, "Scheduling")

    def happened(self, pod: ApiPod, reason: str, note: str, action: str) -> None:
        """Something was done with a pod that is on a node."""
        if len(self._normal) >= _MOST_NORMAL:
            self._normal.popitem(last=False)
            self._sent("dropped")
        self._normal[pod.uid] = _words(pod, "Normal", reason, note, action)
        self._news.set()

    def withdraw(self, uid: PodUid) -> None:
        self._warnings.withdraw((uid, "FailedScheduling"))

    async def run(self) -> None:
        """Sends what waits, one after the other, for ever."""
        while True:
            now = self._clock()
            if (words := self._next(now)) is not None:
                self._sent(await self._told(words))
                if self._is_busy():
                    await self._sleep(_PAUSE_S)
            else:
                await self._wait(self._due(now), now)

    def _next(self, now: float) -> _Words | None:
        if (found := self._warnings.take(now)) is not None:
            return found[1]
        if not self._normal or self._pace.due > now:
            return None
        self._pace.done(now)
        return self._normal.popitem(last=False)[1]

    def _due(self, now: float) -> float | None:
        """When there is something to send; None where it must come first."""
        warning = self._warnings.due(now)
        if not self._normal:
            return warning
        return self._pace.due if warning is None else min(self._pace.due, warning)

    async def _wait(self, due: float | None, now: float) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(None if due is None else max(0.01, due - now)):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _told(self, words: _Words) -> str:
        for _ in range(_TRIES):
            try:
                outcome = await self._write(words)
            except KubeError as error:
                _log.debug("an event was not taken", why=str(error))
                await self._sleep(self._backoff.after(error))
            else:
                self._backoff.reset()
                return outcome
        return "dropped"

    async def _write(self, words: _Words) -> str:
        path, now = f"/apis/events.k8s.io/v1/namespaces/{words.about.namespace}/events", datetime.now(UTC)
        if (begun := self._series.get(words)) is not None:
            name, count = begun
            series = {"series": {"count": count + 1, "lastObservedTime": micro_time(now)}}
            try:
                await self._server.patch(f"{path}/{name}", series, msgspec.Raw)
            except NotFound:  # the API server keeps events for an hour
                del self._series[words]
            else:
                self._series[words] = (name, count + 1)
                return "counted"
        name = f"{words.about.name[:_LONGEST_BEGINNING]}.{time.time_ns():x}"
        await self._server.create(path, self._event(words, name, now), msgspec.Raw)
        if words.type == "Warning":
            self._series[words] = (name, 1)
            while len(self._series) > _SERIES:
                self._series.popitem(last=False)
        return "sent"

    def _event(self, words: _Words, name: str, now: datetime) -> _Event:
        return _Event(
            metadata=_EventMeta(name, words.about.namespace),
            event_time=micro_time(now),
            type=words.type,
            reason=words.reason,
            note=words.note,
            action=words.action,
            regarding=words.about,
            reporting_instance=self._instance,
        )


def _words(pod: ApiPod, type_: str, reason: str, note: str, action: str = "Scheduling") -> _Words:
    cut = note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 1] + "…"
    return _Words(_About(pod.namespace, pod.name, pod.uid), type_, reason, cut, action)
