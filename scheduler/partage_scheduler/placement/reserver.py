"""Takes cards from kubelet for pending pods and returns them, by creating and deleting reservation pods.

It has no state that must survive a restart. Each pass lists the reservations, continues what a previous scheduler
began, and removes what it left behind. A pass decides in one step, without yielding: a card that no pod holds is
withheld at once, and only then is its reservation deleted.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, Conflict, KubeError, NotFound, pod_path, pods_path
from partage_plugins.api import PodUid
from partage_plugins.api.gpu import RESERVATIONS
from partage_scheduler.core import Core
from partage_scheduler.objects import ApiPod
from partage_scheduler.reservation import Reservation, Upkeep, body_of, wants
from partage_scheduler.reservation.demand import Want

EVERY_S: Final = 1.0
REST_S: Final = 30.0
"""Time between passes while no card is reserved and no pod waits; they find what others left behind."""
AGAIN_S: Final = 15.0
"""Time before a pod that cards were reserved for and that is still pending is served again; doubled each time."""
MOST_AGAIN_S: Final = 600.0
MOST_WAITING: Final = 1000
_log = structlog.get_logger()


class _Served(Struct, frozen=True):
    times: int
    until: float


class Reserver:
    def __init__(
        self, server: ApiServer, core: Core, *, image: str, quiet_s: float, may_act: Callable[[], bool]
    ) -> None:
        """`image` of reservation pods only has to wait. `may_act`: this scheduler leads and its cache is in sync."""
        self._server, self._core, self._image, self._may_act = server, core, image, may_act
        self._upkeep = Upkeep(core.cluster, quiet_s=quiet_s)
        self._waiting: dict[PodUid, ApiPod] = {}
        self._served: dict[PodUid, _Served] = {}
        self._look_at = 0.0
        self._repeats = Repeats(every_s=60)

    def missed(self, pod: ApiPod) -> None:
        """Records a pod that was just tried and fits nowhere."""
        if pod.uid in self._waiting or len(self._waiting) < MOST_WAITING:
            self._waiting[pod.uid] = pod

    async def run(self) -> None:
        while True:
            if self._may_act():
                await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """One pass over all reservations and all pending pods."""
        self._forget()
        now = time.monotonic()
        if not self._waiting and not self._upkeep.has_cards() and now < self._look_at:
            return
        try:
            listing = await self._server.list(pods_path(RESERVATIONS), ApiPod)
        except KubeError as error:
            self._repeats.failed("reservations of cards can't be listed", error)
            return
        if not self._may_act():
            return
        now = time.monotonic()
        reservations = [Reservation.of(pod) for pod in listing.items]
        review = self._upkeep.review(reservations, now)
        self._core.queue.happened(self._core.cluster.withhold(review.withheld), now)
        wanted = wants(self._core.cycle, self._unserved(now), review.coming, review.unbound, now)
        self._look_at = now if reservations else now + REST_S
        for each in review.leave:
            await self._leave(each)
        for want in wanted:
            self._serve(want, now)
            await self._reserve(want)

    def _forget(self) -> None:
        """Forgets pods that are no longer pending."""
        queue = self._core.queue
        self._waiting = {uid: pod for uid, pod in self._waiting.items() if uid in queue}
        self._served = {uid: served for uid, served in self._served.items() if uid in self._waiting}

    def _unserved(self, now: float) -> Iterator[ApiPod]:
        """Pending pods that are due, the highest priority first, then the oldest."""
        waiting = sorted(self._waiting.values(), key=lambda pod: (-pod.priority, pod.metadata.creation_timestamp or ""))
        for pod in waiting:
            served = self._served.get(pod.uid)
            if served is None or now >= served.until:
                yield pod

    def _serve(self, want: Want, now: float) -> None:
        before = self._served.get(want.pod)
        times = before.times + 1 if before else 1
        self._served[want.pod] = _Served(times, now + min(AGAIN_S * 2.0 ** (times - 1), MOST_AGAIN_S))

    async def _reserve(self, want: Want) -> None:
        for _ in range(want.cards):
            if not self._may_act():
                return
            name = f"card-{secrets.token_hex(8)}"
            body = body_of(name, want.node, image=self._image)
            try:
                await self._server.create(pods_path(RESERVATIONS), body, msgspec.Raw)
            except KubeError as error:
                self._repeats.failed("a card could not be reserved", error)
                return
            _log.info("card reservation created", node=want.node, reservation=name)

    async def _leave(self, reservation: Reservation) -> None:
        namespace, _, name = reservation.name.partition("/")
        if not self._may_act():
            return
        try:
            await self._server.delete(pod_path(namespace, name), uid=reservation.uid)
        except (NotFound, Conflict):
            return
        except KubeError as error:
            self._repeats.failed("a card could not be given back", error)
            return
        _log.info("card reservation deleted", node=reservation.node, reservation=name)
