"""What a scheduler does once it leads: it follows all that there is, and as soon as all of it is known, it places pods.

Lists that are asked for after the lead was gained are as new as the lead, so whatever the one before did is in them.
A follower is ready as soon as it knows who leads, for it is of use: it takes over. A leader is ready while it knows all
that there is.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from partage_base.daemon.health import Health
from partage_base.daemon.life import Tasks
from partage_base.kube import ApiServer, Backoff
from partage_scheduler.api import streams
from partage_scheduler.api.streams import Sink, Stream, T, keep
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
        patience: Callable[[], Backoff] = streams.patience,
    ) -> None:
        """`known` is called when everything is known, at first and after something was lost."""
        self._known, self._patience = known, patience
        self._parts, self._server, self._namespace = parts, server, namespace
        self._tasks, self._health = tasks, health
        health.unready("lead", "who leads is not known yet")

    async def lead(self) -> None:
        """Returns once it leads; all the rest are tasks."""
        elector = self._parts.elector
        if elector is not None:
            self._tasks.start(elector.run(), name="election")
            await elector.looked()
            self._health.ready("lead")
            await elector.gained()
        self._judge()
        self._health.ready("lead")
        if self._parts.endpoint is not None:
            self._tasks.start(self._parts.endpoint.run(), name="the leader's endpoint")
        self._follow()
        self._tasks.start(self._parts.events.run(), name="events")
        self._tasks.start(self._parts.status.run(), name="conditions")
        self._tasks.start(self._parts.preemptor.run(), name="preempting")
        self._tasks.start(self._parts.evictor.run(), name="evicting")
        if self._parts.reserver is not None:
            self._tasks.start(self._parts.reserver.run(), name="reserving cards")
        self._tasks.start(self._parts.worker.run(), name="placing")

    def _follow(self) -> None:
        intake = self._parts.core.intake
        self._start(streams.NODES, intake.nodes)
        self._start(streams.heartbeats(self._namespace), intake.heartbeats)
        self._start(streams.NAMESPACES, intake.namespaces)
        self._start(streams.VOLUMES, intake.volumes)
        self._start(streams.CLAIMS, intake.claims)
        self._start(streams.CLASSES, intake.classes)
        self._start(streams.CSI_NODES, intake.csi_nodes)
        self._start(streams.BUDGETS, intake.budgets)
        if self._parts.allocates_claims:
            self._start(streams.DEVICE_CLASSES, intake.device_classes)
            self._start(streams.RESOURCE_CLAIMS, intake.resource_claims)
        self._start(streams.PODS, intake.pods)

    def _start(self, stream: Stream[T], sink: Sink[T]) -> None:
        work = keep(
            self._server,
            stream,
            sink,
            freshness=self._parts.freshness,
            told=self._told,
            backoff=self._patience(),
            passed_over=self._parts.figures.passed_over,
        )
        self._tasks.start(work, name=f"following {stream.name}")

    def _told(self) -> None:
        if self._parts.freshness.is_other:
            self._judge()
        self._parts.worker.wake()

    def _judge(self) -> None:
        missing = sorted(self._parts.freshness.missing)
        self._parts.freshness.is_other = False
        if missing:
            self._health.unready("caches", f"not known as of now: {', '.join(missing)}")
            return
        self._health.ready("caches")
        self._known()
        _log.info("all that there is is known; pods are placed", **self._parts.core.queue.sizes())
