"""Gives pods on nodes what they wish for: each wish is decided on, booked, and written on the pod as a new allocation.

A write names the version of the pod that it changes, so it is carried out once at most. What is booked meanwhile is
taken back only when it is certain that the write will not be carried out. Who leads next reads what stands on the pod.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, Backoff, KubeError, NotFound, pod_path
from partage_base.kube.errors import Answered, ServerFailed
from partage_plugins.codecs.resize import GRANTED, REFUSED, WAITS, quoted
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import PodUid
from partage_plugins.vocabulary.keys import RESIZE, RESIZED
from partage_scheduler.api import Events, StatusWriter
from partage_scheduler.api.binder import BEYOND_S, FIRST_AGAIN_S, MOST_AGAIN_S
from partage_scheduler.cluster.seats import Seat
from partage_scheduler.core import Core
from partage_scheduler.objects import ApiPod, Condition
from partage_scheduler.resize import Granted, Stays
from partage_scheduler.signatures import Signed, Signer

EVERY_S: Final = 1.0
AT_ONCE: Final = 16
"""Wishes that are decided on together; those that wait longest since they were looked at come first."""
_NOTHING: Final = Condition(type=RESIZED, status="False")
_log = structlog.get_logger()


class Resizer:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        core: Core,
        signer: Signer,
        *,
        events: Events,
        status: StatusWriter,
        ours: str | None,
        may_decide: Callable[[], bool],
        may_write: Callable[[], bool],
        within_s: float,
        erred: Callable[[KubeError], None] = lambda _error: None,
        resized: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        """`ours` is our schedulerName; None: pods of others have our allocations, too. `resized` hears outcomes."""
        self._server, self._core, self._signer, self._events, self._status = server, core, signer, events, status
        self._ours, self._may_decide, self._may_write, self._within_s = ours, may_decide, may_write, within_s
        self._erred, self._resized = erred, resized
        self._looked: dict[PodUid, float] = {}
        """When each pod was looked at last."""
        self._told: dict[PodUid, Condition] = {}
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            if self._may_decide():
                await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        self._forget()
        seats = [seat for seat in self._core.cluster.seats.wishing() if self._is_open(seat)]
        self._looked = {seat.pod.uid: self._looked.get(seat.pod.uid, 0.0) for seat in seats}
        turn = sorted(seats, key=lambda seat: (self._looked[seat.pod.uid], -seat.pod.priority))
        await asyncio.gather(*[self._resize(seat) for seat in turn[:AT_ONCE]])

    def _forget(self) -> None:
        """A wish that is taken back and made again is another one."""
        for uid in tuple(self._told):
            seat = self._core.cluster.seats.get(uid)
            if seat is None:
                del self._told[uid]
            elif RESIZE not in seat.pod.metadata.annotations:
                self._told[uid] = _NOTHING

    def _is_open(self, seat: Seat) -> bool:
        """Whether there is a wish of a pod of ours, on which was not said no."""
        pod = seat.pod
        if RESIZE not in pod.metadata.annotations or pod.is_going or seat.assumed:
            return False
        return self._ours in {None, pod.spec.scheduler_name} and not self._has_said(pod, GRANTED, REFUSED)

    async def _resize(self, seat: Seat) -> None:
        self._looked[seat.pod.uid] = now = time.monotonic()
        verdict = self._core.resizes.decide(seat, now)
        match verdict:
            case Granted():
                await self._grant(verdict)
            case Stays(pod, why, waits):
                await self._tell(pod, WAITS if waits else REFUSED, why)
            case None:
                await self._tell(seat.pod, GRANTED, "the pod has this")

    async def _grant(self, granted: Granted) -> None:
        pod = granted.pod
        try:
            why = await self._written(pod, self._signer.sign(pod, granted.wanted))
        except PartageError as error:  # its own annotations stand in the way
            why = str(error)
        if why is None:
            _log.info("a pod was resized", pod=f"{pod.namespace}/{pod.name}", gen=granted.wanted.gen)
            await self._tell(pod, GRANTED, f"gen {granted.wanted.gen} of its allocation")
            return
        causes = self._core.cluster.rebook(pod.uid, granted.booked, granted.before)
        self._core.queue.happened(causes, time.monotonic())
        self._resized("failed")
        self._repeats.say("a pod was not resized", pod=f"{pod.namespace}/{pod.name}", why=why)

    async def _written(self, pod: ApiPod, signed: Signed) -> str | None:
        """None once it stands on the pod, which is known by then; else why it does not, and never will."""
        path, version = pod_path(pod.namespace, pod.name), pod.metadata.resource_version
        body = {"metadata": {"uid": pod.uid, "resourceVersion": version, "annotations": signed.annotations}}
        backoff = Backoff(first_s=FIRST_AGAIN_S, most_s=MOST_AGAIN_S, random=random.random)
        doubt_until = 0.0
        while self._may_write():
            try:
                self._core.intake.pods.changed(await self._server.patch(path, body, ApiPod, within_s=self._within_s))
            except NotFound:
                return "it is gone"
            except KubeError as error:
                self._erred(error)
                is_no = isinstance(error, Answered) and not isinstance(error, ServerFailed)
                if not is_no:
                    doubt_until = time.monotonic() + self._within_s + BEYOND_S
                await asyncio.sleep(0 if is_no and not doubt_until else backoff.after(error))
                is_sure = is_no and time.monotonic() >= doubt_until
                found = await self._seen(pod)
                if found is None:
                    continue
                if signed.annotations.items() <= found.metadata.annotations.items():
                    return None
                if is_sure or found.metadata.resource_version != version:
                    return str(error)
            else:
                return None
        return "another scheduler leads now"

    async def _seen(self, pod: ApiPod) -> ApiPod | None:
        """The pod as it is now, which is known by then; None where that can't be asked, or it is gone."""
        try:
            found = await self._server.get(pod_path(pod.namespace, pod.name), ApiPod)
        except KubeError as error:  # asked again, or the next write finds out
            self._erred(error)
            return None
        self._core.intake.pods.changed(found)
        return found

    async def _tell(self, pod: ApiPod, reason: str, why: str) -> None:
        """On the pod, once for each wish and what becomes of it."""
        message = f"{quoted(pod.metadata.annotations[RESIZE])}{why}"
        if self._has_said(pod, reason):
            return
        try:
            status = "True" if reason == GRANTED else "False"
            await self._status.condition(pod, RESIZED, reason, message, status=status)
        except KubeError as error:  # told at the next look
            self._erred(error)
            return
        self._told[pod.uid] = Condition(type=RESIZED, status=status, reason=reason, message=message)
        self._resized(reason.lower())
        if reason == GRANTED:
            self._events.happened(pod, "Resized", f"Resized: {message}", "Resizing")
        else:
            self._events.failed(pod, message, reason=f"Resize{reason}")

    def _has_said(self, pod: ApiPod, *reasons: str) -> bool:
        """Whether one of these is what the pod was told of the wish that it has."""
        stands = next((each for each in pod.status.conditions if each.type == RESIZED), None)
        said = self._told.get(pod.uid, stands)
        wish = pod.metadata.annotations.get(RESIZE, "")
        return said is not None and said.reason in reasons and said.message.startswith(quoted(wish))
