"""Sends pods away for those of a higher priority: who is nominated where is written, and victims are deleted.

Each victim is told for whom (condition and event, in upstream's words) and deleted with the grace that it asked for, or
with less where that is too long, if it is still the pod that was meant. What is under way is done one after the other;
where it fails, the pod that waits is looked at again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, Backoff, Conflict, KubeError, NotFound, pod_path
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.api import Events, StatusWriter
from partage_scheduler.cycle import Stay
from partage_scheduler.objects import ApiPod
from partage_scheduler.preemption import Preemption

TRIES: Final = 3
_DISRUPTION: Final = (
    "DisruptionTarget",
    "PreemptionByScheduler",
    "partage-scheduler: preempting to accommodate a higher priority pod",
)
"""The condition of a victim: its type, reason and message, in upstream's words."""


class _Nominate(msgspec.Struct, frozen=True):
    pod: ApiPod
    node: str


class _Delete(msgspec.Struct, frozen=True):
    victim: ApiPod
    of: ApiPod
    """For whom."""
    node: str


class Preemptor:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        preemption: Preemption,
        events: Events,
        status: StatusWriter,
        *,
        may_act: Callable[[], bool],
        ended: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        """`may_act`: this one leads. `ended` is told what became of each victim: `preempted`, `gone` or `failed`."""
        self._server, self._preemption, self._events, self._status = server, preemption, events, status
        self._may_act, self._ended = may_act, ended
        self._jobs: deque[_Nominate | _Delete] = deque()
        self._news = asyncio.Event()
        self._repeats = Repeats(every_s=30)

    def consider(self, stay: Stay, now: float) -> Stay:
        """For a pod that was tried just now and fits nowhere; returns what its owner is told, and what may help."""
        try:
            considered = self._preemption.consider(stay, now)
        except PluginBroken:
            raise
        except PartageError as error:
            self._say("no victims could be chosen for a pod", stay.pod, str(error))
            return stay
        if considered.node is not None:
            self._nominate(stay.pod, considered.node)
            for victim in considered.victims:
                self._do(_Delete(victim, stay.pod, considered.node))
        elif considered.is_hopeless:
            self._nominate(stay.pod, "")
        return considered.stay

    def disappoint(self) -> None:
        """Takes back the nominations of pods that lost their room to others."""
        for pod in self._preemption.disappointed():
            self._nominate(pod, "")

    async def run(self) -> None:
        while True:
            if not self._jobs:
                self._news.clear()
                await self._news.wait()
            job = self._jobs.popleft()
            if not self._may_act():
                continue
            match job:
                case _Nominate(pod, node):
                    await self._write(pod, node)
                case _Delete(victim, of, node):
                    await self._send_away(victim, of, node)

    def _nominate(self, pod: ApiPod, node: str) -> None:
        if not self._status.is_nominated(pod, node):
            self._do(_Nominate(pod, node))

    def _do(self, job: _Nominate | _Delete) -> None:
        self._jobs.append(job)
        self._news.set()

    async def _write(self, pod: ApiPod, node: str) -> None:
        try:
            await self._status.nominate(pod, node)
        except (NotFound, Conflict):
            pass  # the pod is gone
        except KubeError as error:  # a wish for others to see; the room is kept all the same
            self._say("a nomination was not written", pod, str(error))

    async def _send_away(self, victim: ApiPod, of: ApiPod, node: str) -> None:
        backoff = Backoff(first_s=0.2, most_s=5.0)
        for tries_left in reversed(range(TRIES)):
            try:
                await self._status.condition(victim, *_DISRUPTION)
                grace_s = self._preemption.finder.grace_of(victim)
                await self._server.delete(pod_path(victim.namespace, victim.name), uid=victim.uid, grace_s=grace_s)
            except (NotFound, Conflict):
                self._ended("gone")
                return
            except KubeError as error:
                if not tries_left:
                    self._failed(victim, str(error))
                    return
                await asyncio.sleep(backoff.after(error))
            else:
                self._ended("preempted")
                self._events.happened(victim, "Preempted", f"Preempted by pod {of.uid} on node {node}", "Preempting")
                return

    def _failed(self, victim: ApiPod, why: str) -> None:
        self._ended("failed")
        self._preemption.finder.stays(victim.uid)
        self._say("a pod of a lower priority could not be deleted", victim, why)

    def _say(self, what: str, pod: ApiPod, why: str) -> None:
        self._repeats.say(what, pod=f"{pod.namespace}/{pod.name}", why=why)
