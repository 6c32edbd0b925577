"""Makes kube-scheduler retry pods that fitted nowhere when it asked, and fit now.

kube-scheduler retries when it sees an event that may help. It may be faster than we are, and ask about room before we
have seen it become free; and some changes it never sees: an advertiser whose heartbeat resumes, or room outside the
sample of nodes that it took. It retries a pod whose status changes, so a condition reports that there may be room.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from partage_base.daemon.logs import Repeats
from partage_base.kube import Conflict, KubeError, NotFound
from partage_plugins.api import PodUid
from partage_plugins.api.keys import ALLOC_PREFIX
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.api.status import StatusWriter
from partage_scheduler.authority import Obstacle
from partage_scheduler.objects import ApiPod

CONDITION: Final = f"{ALLOC_PREFIX}Room"
_FIRST_S: Final = 2.0
"""By then kube-scheduler would have retried by itself."""
_MOST_S: Final = 300.0
"""By then it retries every unschedulable pod; one that it has not asked about for twice as long is gone."""
_EVERY_S: Final = 1.0
_AT_ONCE: Final = 20
"""Pods checked in one round: a check costs as much as an answer."""
_MOST: Final = 10_000
_MOST_BYTES: Final = 32 << 20
"""Bounds on the pods remembered: their number, and their total size as text."""
_MAY_FIT: Final = CONDITION, "MayFit", "there was room for its devices on a node, so it is to be tried again"


@dataclass
class _Away:
    pod: ApiPod
    rest_s: float
    told_at: float
    due: float


class UnschedulablePods:
    """Pods that fitted nowhere, and when to check them again. Pure."""

    def __init__(self) -> None:
        self._pods: OrderedDict[PodUid, _Away] = OrderedDict()
        self._bytes = 0

    def told(self, pod: ApiPod, now: float) -> None:
        before = self._pop(pod.uid)
        rest_s = _FIRST_S if before is None else before.rest_s
        self._put(_Away(pod, rest_s, now, now + rest_s))
        while len(self._pods) > _MOST or self._bytes > _MOST_BYTES:
            self._pop(next(iter(self._pods)))

    def forget(self, uid: PodUid) -> None:
        self._pop(uid)

    def due(self, now: float) -> list[ApiPod]:
        """A few due pods at a time, in turn."""
        found = list(islice((uid for uid, away in self._pods.items() if away.due <= now), _AT_ONCE))
        return [away.pod for uid in found if (away := self._looked_at(uid, now)) is not None]

    def reminded(self, uid: PodUid, now: float) -> None:
        """Doubles the interval to the next check: a pod unschedulable for other reasons gets few reminders."""
        if (away := self._pods.get(uid)) is not None:
            away.rest_s = min(away.rest_s * 2, _MOST_S)
            away.due = now + away.rest_s

    def _looked_at(self, uid: PodUid, now: float) -> _Away | None:
        away = self._pop(uid)
        if away is None or away.told_at + 2 * _MOST_S < now:
            return None
        away.due = now + _FIRST_S
        self._put(away)
        return away

    def _put(self, away: _Away) -> None:
        self._pods[away.pod.uid] = away
        self._bytes += away.pod.bytes

    def _pop(self, uid: PodUid) -> _Away | None:
        away = self._pods.pop(uid, None)
        if away is not None:
            self._bytes -= away.pod.bytes
        return away


class Reminder:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        status: StatusWriter,
        *,
        fits: Callable[[ApiPod, float], bool],
        is_placed: Callable[[PodUid], bool],
        obstacle: Callable[[], Obstacle | None],
        ended: Callable[[str], None] = lambda _outcome: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`ended` is called with the outcome of each reminder: `done`, `gone` or `failed`."""
        self._status, self._fits, self._is_placed, self._obstacle = status, fits, is_placed, obstacle
        self._ended, self._clock, self._sleep = ended, clock, sleep
        self._away = UnschedulablePods()
        self._repeats = Repeats(every_s=60)

    def fits_nowhere(self, pod: ApiPod) -> None:
        self._away.told(pod, self._clock())

    def fits_somewhere(self, uid: PodUid) -> None:
        self._away.forget(uid)

    async def run(self) -> None:
        while True:
            await self._sleep(_EVERY_S)
            if self._obstacle() is None:
                for pod in self._away.due(self._clock()):
                    await self._look(pod)
                    await self._sleep(0)

    async def _look(self, pod: ApiPod) -> None:
        if self._is_placed(pod.uid):
            self._away.forget(pod.uid)
        elif self._may_fit(pod):
            await self._remind(pod)

    def _may_fit(self, pod: ApiPod) -> bool:
        try:
            return self._fits(pod, self._clock())
        except PluginBroken:
            raise
        except PartageError:  # reported to the caller of filter
            return False

    async def _remind(self, pod: ApiPod) -> None:
        try:
            await self._status.condition(pod, *_MAY_FIT, probed=True)
        except (NotFound, Conflict):
            self._away.forget(pod.uid)
            self._ended("gone")
        except KubeError as error:
            self._ended("failed")
            self._repeats.failed("kube-scheduler was not reminded of a pod", error, pod=f"{pod.namespace}/{pod.name}")
        else:
            self._away.reminded(pod.uid, self._clock())
            self._ended("done")
