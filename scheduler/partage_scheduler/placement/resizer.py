"""Resizes pods on nodes: each request is decided on, booked, and written on the pod as a new allocation.

A write names the version of the pod that it changes, so it takes effect at most once. The booking is undone only when
it is certain that the write will not take effect. The next leader reads what is on the pod.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, Backoff, KubeError, NotFound, pod_path
from partage_base.kube.errors import ServerFailed, StatusError
from partage_plugins.api import PodUid
from partage_plugins.api.keys import RESIZE, RESIZED
from partage_plugins.codecs.resize import GRANTED, REFUSED, WAITS
from partage_plugins.errors import PartageError
from partage_scheduler.api import Events, StatusWriter
from partage_scheduler.api.binder import BEYOND_S, FIRST_AGAIN_S, MOST_AGAIN_S
from partage_scheduler.authority import Authority
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.core import Core
from partage_scheduler.metrics import Figures
from partage_scheduler.objects import ApiPod
from partage_scheduler.resize import Granted, Stays
from partage_scheduler.resize.outcome import quoted, said_of
from partage_scheduler.signatures import Signed, Signer

EVERY_S: Final = 1.0
AT_ONCE: Final = 16
"""Requests that are decided on together; those looked at longest ago come first."""
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
        authority: Authority,
        figures: Figures,
        ours: str | None,
        within_s: float,
    ) -> None:
        """`ours` is our schedulerName; None: pods of other schedulers have our allocations, too."""
        self._server, self._core, self._signer, self._events, self._status = server, core, signer, events, status
        self._authority, self._figures, self._ours, self._within_s = authority, figures, ours, within_s
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
        try:
            why = await self._written(pod, self._signer.sign(pod, granted.wanted))
        except PartageError as error:  # its own annotations stand in the way
            why = str(error)
        if why is None:
            _log.info("a pod was resized", pod=f"{pod.namespace}/{pod.name}", gen=granted.wanted.gen)
            await self._tell(pod, GRANTED, f"gen {granted.wanted.gen} of its allocation")
            return
        cluster_events = self._core.cluster.rebook(pod.uid, granted.booked, granted.before)
        self._core.queue.happened(cluster_events, time.monotonic())
        self._figures.resizes.add("failed")
        self._repeats.say("a pod was not resized", pod=f"{pod.namespace}/{pod.name}", why=why)

    async def _written(self, pod: ApiPod, signed: Signed) -> str | None:
        """Writes the allocation and updates the cache; returns None, or why the write never takes effect."""
        path, version = pod_path(pod.namespace, pod.name), pod.metadata.resource_version
        body = {"metadata": {"uid": pod.uid, "resourceVersion": version, "annotations": signed.annotations}}
        backoff = Backoff(first_s=FIRST_AGAIN_S, most_s=MOST_AGAIN_S)
        doubt_until = 0.0
        while self._authority.may_bind():
            try:
                self._core.event_handlers.pods.changed(
                    await self._server.patch(path, body, ApiPod, within_s=self._within_s)
                )
            except NotFound:
                return "it is gone"
            except KubeError as error:
                self._figures.erred(error)
                is_no = isinstance(error, StatusError) and not isinstance(error, ServerFailed)
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
        """Fetches the pod and updates the cache; None if the request failed or the pod is gone."""
        try:
            found = await self._server.get(pod_path(pod.namespace, pod.name), ApiPod)
        except KubeError as error:  # fetched again, or the next write shows it
            self._figures.erred(error)
            return None
        self._core.event_handlers.pods.changed(found)
        return found

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
