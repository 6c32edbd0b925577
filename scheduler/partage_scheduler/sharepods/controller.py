"""Carries out one step after the other, for one SharePod at a time; the only writer of SharePods' status.

Answers of the API server update the state at once, so that the next step builds on them. A call may succeed without an
answer, and this process may die after any call: the step is then repeated, and finds the pod or the mark there.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.event_wait import set_within
from partage_base.kube import (
    ApiServer,
    Conflict,
    EventWriter,
    KubeError,
    NotFound,
    ObjectReference,
    Occurrence,
    ServerFailed,
    StatusError,
    Throttled,
    pod_path,
    pods_path,
)
from partage_scheduler.sharepods.manifest import Manifest
from partage_scheduler.sharepods.objects import GPUID, GROUP_VERSION, KIND, OURS, Key, OwnedPod, SharePod
from partage_scheduler.sharepods.state import State
from partage_scheduler.sharepods.status import SYNCED, SYNCED_MESSAGE, status_of, synced
from partage_scheduler.sharepods.step import Create, Halt, Leave, Mark, Planner, taken

POD_REFUSED: Final = "PodRefused"
COMPONENT: Final = "partage-sharepods"
_MOST_WAITING: Final = 1_000
_log = structlog.get_logger()


class EventRecorder:
    """Events on SharePods, for `kubectl describe sharepod`.

    Dropped if there are too many; the status has the same information.
    """

    def __init__(self, server: ApiServer, *, instance: str) -> None:
        self._waiting: asyncio.Queue[Occurrence] = asyncio.Queue(_MOST_WAITING)
        self._writer = EventWriter(server, component=COMPONENT, instance=instance, first_s=0.5, most_s=15.0)
        self._repeats = Repeats(every_s=60)

    def tell(self, share: SharePod, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        about = ObjectReference(
            kind=KIND, api_version=GROUP_VERSION, namespace=share.namespace, name=share.name, uid=share.metadata.uid
        )
        try:
            self._waiting.put_nowait(Occurrence.of(about, type_, reason, message, "Synchronizing"))
        except asyncio.QueueFull:
            self._repeats.say("events on SharePods are dropped: the API server takes them too slowly")

    async def run(self) -> None:
        """Sends queued events until cancelled."""
        while True:
            outcome = await self._writer.write(await self._waiting.get(), in_series=True)
            if outcome == "dropped":
                self._repeats.say("an event on a SharePod was not taken")


class _Made(NamedTuple):
    pod: OwnedPod | None
    halt: Halt | None


class Controller:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        state: State,
        planner: Planner,
        event_recorder: EventRecorder,
        *,
        may_act: Callable[[], bool],
        within_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`may_act`: this replica leads and its caches are synced. A pod is created `within_s` or not at all."""
        self._server, self._state, self._planner, self._event_recorder = server, state, planner, event_recorder
        self._may_act, self._within_s, self._clock = may_act, within_s, clock
        self.turns: Counter[str] = Counter()
        """Number of steps by result."""
        self._woken = asyncio.Event()
        self._repeats = Repeats(every_s=30)

    def wake(self) -> None:
        """To be called when something changed, or may be done now."""
        self._woken.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            if not await self.work():
                await self._wait()

    async def work(self) -> bool:
        """Does one step of one SharePod; False if none is due."""
        key = self._state.work_queue.next(self._clock()) if self._may_act() else None
        if key is not None:
            await self._turn(key)
        return key is not None

    async def _wait(self) -> None:
        now = self._clock()
        due = self._state.work_queue.due(now) if self._may_act() else None
        await set_within(self._woken, None if due is None else max(0.001, due - now))

    async def _turn(self, key: Key) -> None:
        work_queue = self._state.work_queue
        share = self._state.shares.get(key)
        if share is None:
            work_queue.forget(key)
            return
        try:
            stands = await self._stepped(share, self._state.pods.get(key))
        except (Conflict, NotFound):  # it changed or was deleted; the watch will report it
            stands = False
        except KubeError as error:
            self._repeats.failed("a SharePod was not brought on; tried again", error, sharepod="/".join(key))
            stands = False
        self.turns["done" if stands else "again"] += 1
        if stands:
            work_queue.went_well(key)
        else:
            work_queue.failed(key, self._clock())

    async def _stepped(self, share: SharePod, pod: OwnedPod | None) -> bool:
        """Whether there is nothing to retry."""
        step = self._planner.next(share, pod)
        halt, again = None, False
        match step:
            case Leave():
                return True
            case Create():
                pod, halt = await self._created(share, step.pod)
                again = halt is not None
            case Mark():
                share = await self._marked(share, step)
            case Halt():
                halt = step
            case _:
                pass
        await self._report(share, pod, halt)
        return not again

    async def _created(self, share: SharePod, manifest: Manifest) -> _Made:
        try:
            made = await self._server.create(pods_path(share.namespace), manifest, OwnedPod, within_s=self._within_s)
        except Conflict:
            return await self._found(share)
        except (Throttled, ServerFailed):
            raise
        except StatusError as refused:  # a quota, a policy, pod security, or an invalid spec
            return _Made(None, Halt(POD_REFUSED, f"the API server refuses its pod: {refused}", is_wrong=True))
        _log.debug("created the pod of a SharePod", sharepod=f"{share.namespace}/{share.name}")
        self._state.pods.changed(made)
        return _Made(made, None)

    async def _found(self, share: SharePod) -> _Made:
        """A pod of that name exists, which the watch has not reported yet or which is not ours."""
        found = await self._server.get(pod_path(share.namespace, share.name), OwnedPod)
        if not found.is_of(share):
            return _Made(None, taken(share, found))
        if OURS not in found.metadata.labels:
            return _Made(found, Halt(POD_REFUSED, f"its pod lost the label {OURS}: put it back", is_wrong=True))
        self._state.pods.changed(found)
        return _Made(found, None)

    async def _marked(self, share: SharePod, mark: Mark) -> SharePod:
        """Fails with a conflict if somebody else changed it meanwhile."""
        meta = {"resourceVersion": share.metadata.resource_version, "annotations": {GPUID: mark.gpuid}}
        patch = {"metadata": meta, "spec": {"nodeName": mark.node}}
        marked = await self._server.patch(_path(share), patch, SharePod)
        self._state.shares.changed(marked)
        return marked

    async def _report(self, share: SharePod, pod: OwnedPod | None, halt: Halt | None) -> None:
        status = status_of(share, pod, halt, now=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        if status == share.status:
            return
        meta = {"name": share.name, "namespace": share.namespace, "resourceVersion": share.metadata.resource_version}
        body = {"apiVersion": GROUP_VERSION, "kind": KIND, "metadata": meta, "spec": share.spec, "status": status}
        told = await self._server.replace(f"{_path(share)}/status", body, SharePod)
        self._state.shares.changed(told)
        before, now = synced(share), synced(told)
        if now is None:
            return
        is_other = before is None or before.reason != now.reason
        if is_other or (halt is not None and before is not None and before.message != now.message):
            reason, message = (SYNCED, SYNCED_MESSAGE) if halt is None else (halt.reason, halt.message)
            self._event_recorder.tell(share, "Warning" if halt and halt.is_wrong else "Normal", reason, message)


def _path(share: SharePod) -> str:
    return f"/apis/{GROUP_VERSION}/namespaces/{share.namespace}/sharepods/{share.name}"
