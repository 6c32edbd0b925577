"""The only writer of pods' status: conditions and nominations.

PodScheduled of an unschedulable pod is written only if it has changed: a write costs the API server more than a binding
does. A write still under way when its pod is bound might follow the binding and contradict it, so a binding waits for
it (`settled`). Everything else is written at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from partage_base.daemon.logs import Repeats
from partage_base.event_wait import set_within
from partage_base.kube import ApiServer, Backoff, Conflict, KubeError, NotFound, pod_status_path
from partage_plugins.api import PodUid
from partage_scheduler.api.outbox import Outbox
from partage_scheduler.objects import ApiPod, Condition

T = TypeVar("T")

SCHEDULED: Final = "PodScheduled"
ConditionReason = Literal["Unschedulable", "SchedulerError", "SchedulingGated"]
_MOST_WAITING: Final = 20_000
_REMEMBERED: Final = 10_000
_EVERY_S: Final = 20.0
"""Least interval for a pod: reasons count nodes, so they change whenever one of many nodes does."""
_LONGEST_MESSAGE: Final = 2_048
"""The last message of each waiting pod is kept in memory."""
_FIRST_AGAIN_S: Final = 0.5
_MOST_AGAIN_S: Final = 15.0


class Unplaced(msgspec.Struct, frozen=True):
    """A pod that is on no node, and why."""

    pod: ApiPod
    message: str
    reason: ConditionReason = "Unschedulable"


class StatusWriter:
    def __init__(
        self,
        server: ApiServer,
        *,
        written: Callable[[str], None] = lambda _outcome: None,
        every_s: float = _EVERY_S,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`written` is called with the outcome of each: `done`, `failed` or `gone`."""
        self._server, self._written = server, written
        self._sleep = sleep
        self._outbox: Outbox[PodUid, Unplaced] = Outbox(most=_MOST_WAITING, every_s=every_s)
        self._said: dict[PodUid, tuple[str, str]] = {}
        self._going: dict[PodUid, asyncio.Future[None]] = {}
        self._nominated: OrderedDict[PodUid, str] = OrderedDict()
        """Written nominations, which the watch may not have reported yet."""
        self._news = asyncio.Event()
        self._backoff = Backoff(first_s=_FIRST_AGAIN_S, most_s=_MOST_AGAIN_S)
        self._repeats = Repeats(every_s=60)

    def __len__(self) -> int:
        return len(self._outbox)

    def tell(self, unplaced: Unplaced) -> None:
        if len(unplaced.message) > _LONGEST_MESSAGE:
            unplaced = replace(unplaced, message=unplaced.message[: _LONGEST_MESSAGE - 1] + "…")
        said = self._said.get(unplaced.pod.uid) or _stands(unplaced.pod)
        if said == (unplaced.reason, unplaced.message):
            self._outbox.withdraw(unplaced.pod.uid)
            return
        self._outbox.put(unplaced.pod.uid, unplaced)
        self._news.set()

    async def settled(self, uid: PodUid) -> None:
        """Stops writing about a pod that is about to be bound, and waits for a write under way."""
        self._outbox.withdraw(uid)
        if (going := self._going.get(uid)) is not None:
            await asyncio.wait([going])

    def forget(self, uid: PodUid) -> None:
        self._outbox.withdraw(uid)
        self._said.pop(uid, None)
        self._nominated.pop(uid, None)

    def is_nominated(self, pod: ApiPod, node: str) -> bool:
        """Whether the pod already has this nomination, or is about to get it; records it otherwise."""
        if self._nominated.get(pod.uid, pod.status.nominated_node_name) == node:
            return True
        self._nominated[pod.uid] = node
        while len(self._nominated) > _REMEMBERED:
            self._nominated.popitem(last=False)
        return False

    async def nominate(self, pod: ApiPod, node: str) -> None:
        """Writes the node where the pod will have room, or none. Raises `KubeError`; then the pod is not nominated."""
        try:
            await self._patch(pod, {"nominatedNodeName": node or None}, msgspec.Raw)
        except KubeError:
            self._nominated.pop(pod.uid, None)
            raise

    async def condition(  # noqa: PLR0913 - the fields of a condition
        self, pod: ApiPod, type_: str, reason: str, message: str, *, probed: bool = False, status: str = "True"
    ) -> ApiPod:
        """Sets a condition and returns the pod; raises `KubeError`. With `probed` each write changes the pod."""
        stamp = "lastProbeTime" if probed else "lastTransitionTime"
        body = _condition(type_, status, reason, message[:_LONGEST_MESSAGE], stamp=stamp)
        return await self._patch(pod, body, ApiPod)

    async def run(self) -> None:
        while True:
            now = time.monotonic()
            if (found := self._outbox.take(now)) is not None:
                await self._write(*found)
            else:
                await self._wait(self._outbox.due(now), now)

    async def _wait(self, due: float | None, now: float) -> None:
        self._news.clear()
        await set_within(self._news, None if due is None else max(0.01, due - now))

    async def _write(self, uid: PodUid, unplaced: Unplaced) -> None:
        done = self._going[uid] = asyncio.get_running_loop().create_future()
        wait_s = 0.0
        try:
            await self._patch_unplaced(unplaced)
        except NotFound:
            self._written("gone")
        except Conflict:  # a concurrent write; or another pod has its name, and this one is forgotten soon
            self._written("failed")
            self._outbox.put(uid, unplaced)
        except KubeError as error:
            self._written("failed")
            self._outbox.put(uid, unplaced)
            wait_s = self._backoff.after(error)
            self._repeats.failed("a condition was not written; tried again", error)
        else:
            self._backoff.reset()
            self._written("done")
            self._said[uid] = (unplaced.reason, unplaced.message)
        finally:
            del self._going[uid]
            done.set_result(None)
        if wait_s:
            await self._sleep(wait_s)

    async def _patch_unplaced(self, unplaced: Unplaced) -> None:
        since = _since(unplaced.pod)
        status = _condition(SCHEDULED, "False", unplaced.reason, unplaced.message, since=since)
        await self._patch(unplaced.pod, status, msgspec.Raw)

    async def _patch(self, pod: ApiPod, status: Mapping[str, object], answer: type[T]) -> T:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        return await self._server.patch(pod_status_path(pod.namespace, pod.name), body, answer, how="strategic")


def _condition(  # noqa: PLR0913 - the fields of a condition
    type_: str,
    status: str,
    reason: str,
    message: str,
    *,
    stamp: str = "lastTransitionTime",
    since: str | None = None,
) -> Mapping[str, object]:
    condition = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        stamp: since or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"conditions": [condition]}


def _stands(pod: ApiPod) -> tuple[str, str] | None:
    """The pod's condition as last seen, maybe written by a previous scheduler."""
    found = _unscheduled(pod)
    return None if found is None else (found.reason, found.message)


def _since(pod: ApiPod) -> str | None:
    found = _unscheduled(pod)
    return None if found is None else found.last_transition_time


def _unscheduled(pod: ApiPod) -> Condition | None:
    return next((each for each in pod.status.conditions if each.type == SCHEDULED and each.status == "False"), None)
