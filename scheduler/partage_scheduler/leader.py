"""The leader's work: follow all API objects and, as soon as the cache is in sync, place pods.

Lists are requested after leadership is acquired, so that they include all writes of the previous leader. A standby is
ready as soon as it knows who leads, since it can take over. A leader is ready while its cache is in sync.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from partage_base.daemon.health import Health
from partage_base.daemon.life import Tasks
from partage_base.kube import ApiServer, Backoff
from partage_scheduler.api.streams import Follower, all_streams, patience
from partage_scheduler.assembly import Parts

_log = structlog.get_logger()


class Leader:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        parts: Parts,
        server: ApiServer,
        *,
        namespace: str,
        tasks: Tasks,
        health: Health,
        known: Callable[[], None] = lambda: None,
        patience: Callable[[], Backoff] = patience,
    ) -> None:
        """`known` is called whenever the cache gets in sync: at first, and again after events were missed."""
        self._known, self._parts, self._namespace = known, parts, namespace
        self._tasks, self._health = tasks, health
        self._follower = Follower(
            server,
            parts.freshness,
            tasks=tasks,
            health=health,
            heard=parts.worker.wake,
            known=self._all_known,
            patience=patience,
            skipped=parts.figures.undecodable.add,
        )
        health.unready("lead", "who leads is not known yet")

    async def lead(self) -> None:
        """Returns once it leads; everything else runs as tasks."""
        elector = self._parts.elector
        if elector is not None:
            self._tasks.start(elector.run(), name="election")
            await elector.looked()
            self._health.ready("lead")
            await elector.gained()
        self._follower.judge()
        self._health.ready("lead")
        if self._parts.endpoint is not None:
            self._tasks.start(self._parts.endpoint.run(), name="the leader's endpoint")
        claims = self._parts.allocates_claims
        for stream, sink in all_streams(self._parts.core.event_handlers, namespace=self._namespace, claims=claims):
            self._follower.follow(stream, sink)
        self._tasks.start(self._parts.events.run(), name="events")
        self._tasks.start(self._parts.status.run(), name="conditions")
        self._tasks.start(self._parts.preemptor.run(), name="preempting")
        self._tasks.start(self._parts.evictor.run(), name="evicting")
        self._tasks.start(self._parts.resizer.run(), name="resizing")
        self._tasks.start(self._parts.suspender.run(), name="suspending")
        self._tasks.start(self._parts.resized_pods.run(), name="naming resized pods")
        self._tasks.start(self._parts.occupancy.run(), name="counting what is used")
        if self._parts.reserver is not None:
            self._tasks.start(self._parts.reserver.run(), name="reserving cards")
        self._tasks.start(self._parts.worker.run(), name="placing")

    def _all_known(self) -> None:
        self._known()
        _log.info("cache in sync; placing pods", **self._parts.core.queue.sizes())
