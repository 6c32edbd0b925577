"""Preempts pods for those of a higher priority: writes nominations and deletes victims.

Each victim gets a condition and an event that names the preemptor, in upstream's words, and is deleted with its own
grace period, or with less if that is too long, provided that it is still the same pod. Jobs are done one after the
other; if one fails, the pending pod is considered again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, Backoff, Conflict, KubeError, NotFound, pod_path
from partage_plugins.api import PodUid
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.api import Events, StatusWriter
from partage_scheduler.cycle import Unschedulable
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
    of: PodUid
    """The pod for which it is deleted."""
    node: str
    why: str = ""
    """Why it was not suspended, if it was to be."""


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
        """`may_act`: it leads. `ended` gets the outcome for each victim: `preempted`, `gone` or `failed`."""
        self._server, self._preemption, self._events, self._status = server, preemption, events, status
        self._may_act, self._ended = may_act, ended
        self._jobs: deque[_Nominate | _Delete] = deque()
        self._news = asyncio.Event()
        self._repeats = Repeats(every_s=30)

    def consider(self, stay: Unschedulable, now: float) -> Unschedulable:
        """Considers victims for a pod that just fitted nowhere; returns its message and the events that may help."""
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
                self._do(_Delete(victim, stay.pod.uid, considered.node))
        elif considered.is_hopeless:
            self._nominate(stay.pod, "")
        return considered.stay

    def evict(self, victim: ApiPod, of: PodUid, node: str, why: str) -> None:
        """Deletes a victim that was to be suspended."""
        self._preemption.finder.sent_away((victim.uid,))
        self._do(_Delete(victim, of, node, why))

    def disappoint(self) -> None:
        """Withdraws nominations of pods that lost their held resources to others."""
        for pod in self._preemption.finder.cluster.pointless():
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
                case _Delete():
                    await self._send_away(job)

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
        except KubeError as error:  # it only informs others; the resources are held anyway
            self._say("a nomination was not written", pod, str(error))

    async def _send_away(self, job: _Delete) -> None:
        victim, backoff = job.victim, Backoff(first_s=0.2, most_s=5.0)
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
                note = f"Preempted by pod {job.of} on node {job.node}"
                self._events.happened(victim, "Preempted", f"{note}: {job.why}" if job.why else note, "Preempting")
                return

    def _failed(self, victim: ApiPod, why: str) -> None:
        self._ended("failed")
        self._preemption.finder.stays(victim.uid)
        self._say("a pod of a lower priority could not be deleted", victim, why)

    def _say(self, what: str, pod: ApiPod, why: str) -> None:
        self._repeats.say(what, pod=f"{pod.namespace}/{pod.name}", why=why)
