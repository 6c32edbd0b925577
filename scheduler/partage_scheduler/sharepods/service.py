"""The controller as a daemon: waits to become leader, syncs its caches, and creates pods until it is stopped."""

from __future__ import annotations

import asyncio
import secrets
import socket
import string
import uuid
from typing import Final

import structlog

from partage_base.daemon.api_server import server_for
from partage_base.daemon.life import Daemon
from partage_base.kube import ApiServer
from partage_scheduler.api.election import Elector, until_stopped
from partage_scheduler.api.streams import Follower, Freshness, Stream
from partage_scheduler.core import decider_over, plugins
from partage_scheduler.sharepods.controller import COMPONENT, Controller, EventRecorder
from partage_scheduler.sharepods.objects import OURS, SHAREPODS, OwnedPod, SharePod
from partage_scheduler.sharepods.settings import SharePodSettings
from partage_scheduler.sharepods.state import State
from partage_scheduler.sharepods.step import Planner

SHARES: Final = Stream("sharepods", SHAREPODS, SharePod)
PODS: Final = Stream("pods", "/api/v1/pods", OwnedPod, labels=OURS)
_HINT: Final = f"; {SHAREPODS} needs the CustomResourceDefinition in manifests/sharepods"
_LETTERS: Final = 5
_log = structlog.get_logger()


async def start(settings: SharePodSettings, daemon: Daemon) -> SharePodService:
    """Requires plugins and credentials; the API server and the CustomResourceDefinition may still be missing."""
    _, side = decider_over(plugins())
    server = await daemon.stack.enter_async_context(await server_for("sharepods", settings.kubeconfig))
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    terms = settings.terms
    elector = Elector(server, namespace=settings.namespace, name=COMPONENT, identity=identity, terms=terms)
    daemon.stack.push_async_callback(elector.release)
    state = State(drawn)
    freshness = Freshness((SHARES.name, PODS.name))
    event_recorder = EventRecorder(server, instance=identity)
    controller = Controller(
        server,
        state,
        Planner(state.cards, side.requests, scheduler=settings.scheduler_name),
        event_recorder,
        may_act=lambda: elector.leads and not freshness.missing,
        within_s=terms.last_word_s,
    )
    metrics = daemon.metrics
    metrics.read_gauge("partage_sharepods_leads", "1 while this controller leads.", lambda: elector.leads)
    metrics.read_gauge("partage_sharepods_known", "SharePods that there are.", lambda: len(state.shares))
    metrics.read_gauge("partage_sharepods_pods", "Pods of SharePods that there are.", lambda: len(state.pods))
    metrics.read_counter(
        "partage_sharepods_turns_total", "Turns of SharePods.", lambda: controller.turns, label="result"
    )
    return SharePodService(daemon, server, elector, state, freshness, controller, event_recorder)


def drawn() -> str:
    """A GPUID in KubeShare's own format."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(_LETTERS))


class SharePodService:
    def __init__(  # noqa: PLR0913, PLR0917 - made once, by `start`
        self,
        daemon: Daemon,
        server: ApiServer,
        elector: Elector,
        state: State,
        freshness: Freshness,
        controller: Controller,
        event_recorder: EventRecorder,
    ) -> None:
        self._daemon, self._elector = daemon, elector
        self._state, self._controller, self._event_recorder = state, controller, event_recorder
        self._follower = Follower(
            server,
            freshness,
            tasks=daemon.tasks,
            health=daemon.health,
            heard=controller.wake,
            known=self._all_known,
            hint=_HINT,
        )
        daemon.health.unready("lead", "who leads is not known yet")

    async def run(self, stopping: asyncio.Event) -> None:
        await until_stopped(self._lead(), stopping)

    async def _lead(self) -> None:
        """Lists only after it became leader, so that they include all writes of the previous leader."""
        tasks, health = self._daemon.tasks, self._daemon.health
        tasks.start(self._elector.run(), name="election")
        await self._elector.looked()
        health.ready("lead")
        await self._elector.gained()
        self._follower.judge()
        self._follower.follow(SHARES, self._state.shares)
        self._follower.follow(PODS, self._state.pods)
        tasks.start(self._event_recorder.run(), name="events")
        tasks.start(self._controller.run(), name="making pods")

    def _all_known(self) -> None:
        _log.info("caches synced", sharepods=len(self._state.shares), pods=len(self._state.pods))
