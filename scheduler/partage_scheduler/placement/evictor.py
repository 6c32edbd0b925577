"""Notifies owners of pods that should leave their nodes, and evicts the pods when due, as budgets allow.

It uses the Eviction API, which answers 429 while a PodDisruptionBudget forbids the eviction; then it retries later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, Conflict, KubeError, NotFound, Throttled
from partage_plugins.api import PodUid
from partage_scheduler.api import Events
from partage_scheduler.eviction import LOST, Notice, Notices
from partage_scheduler.objects import ApiPod

EVERY_S: Final = 5.0
AGAIN_S: Final = 15.0
"""Time between attempts to evict a pod."""


class Evictor:
    def __init__(
        self,
        server: ApiServer,
        leaving: Notices,
        events: Events,
        *,
        may_act: Callable[[], bool],
        ended: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        """`may_act`: it leads and its cache is in sync. `ended` gets `evicted`, `gone`, `refused` or `failed`."""
        self._server, self._leaving, self._events = server, leaving, events
        self._may_act, self._ended = may_act, ended
        self._not_before: dict[PodUid, float] = {}
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            if self._may_act():
                await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        notices = self._leaving.look(time.monotonic())
        there = {notice.pod.uid for notice in notices}
        self._not_before = {uid: at for uid, at in self._not_before.items() if uid in there}
        for notice in notices:
            is_evicted = self._leaving.is_evicted(notice.trouble.reason)
            if notice.is_news and (is_evicted or notice.trouble.reason == LOST):
                self._tell(notice, is_evicted=is_evicted)
            if notice.is_due and time.monotonic() >= self._not_before.get(notice.pod.uid, 0.0) and self._may_act():
                await self._evict(notice)

    def _tell(self, notice: Notice, *, is_evicted: bool) -> None:
        end = "; the pod will be evicted unless that changes" if is_evicted else ""
        self._events.failed(notice.pod, f"{notice.trouble.words}{end}", reason=notice.trouble.reason)

    async def _evict(self, notice: Notice) -> None:
        pod = notice.pod
        outcome = await self._asked(pod)
        self._ended(outcome)
        self._not_before[pod.uid] = time.monotonic() + AGAIN_S
        if outcome == "evicted":
            self._events.happened(pod, "Evicted", f"Evicted: {notice.trouble.words}", "Evicting")

    async def _asked(self, pod: ApiPod) -> str:
        try:
            await self._server.evict(pod.namespace, pod.name, uid=pod.uid)
        except (NotFound, Conflict):
            return "gone"
        except Throttled as error:
            self._say("a pod is not evicted yet", pod, str(error))
            return "refused"
        except KubeError as error:
            self._say("a pod could not be evicted", pod, str(error))
            return "failed"
        return "evicted"

    def _say(self, what: str, pod: ApiPod, why: str) -> None:
        self._repeats.say(what, pod=f"{pod.namespace}/{pod.name}", why=why)
