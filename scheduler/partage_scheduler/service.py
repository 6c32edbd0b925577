"""The scheduler as a daemon: waits for the lead, learns all that there is, places pods until it is told to stop.

It listens to nothing before it leads: lists that were asked for after the lead was gained are as new as the lead, so
whatever the one before it did is in them. A lead that is lost ends the process. At the end bindings that are under way
are waited for, then the lead is handed back.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final

import structlog

from partage_base.daemon.life import Daemon
from partage_base.kube import ApiServer
from partage_scheduler.api.election import until_stopped
from partage_scheduler.assembly import Parts, api_server, assemble, signer_of
from partage_scheduler.core import plugins
from partage_scheduler.leader import Leader
from partage_scheduler.metrics import Figures
from partage_scheduler.settings import SchedulerSettings

SETTLE_S: Final = 5.0
"""For bindings that are under way when a stop begins."""
_COLLECT_AFTER: Final = 50_000
"""New objects; what is known of a large cluster is a million, and need not be looked through for garbage."""
_log = structlog.get_logger()


async def start(settings: SchedulerSettings, daemon: Daemon) -> SchedulerService:
    """Keys, plugins and access must be there; the API server need not be."""
    signer, registry = signer_of(settings), plugins()
    server = await daemon.stack.enter_async_context(await api_server(settings))
    parts = assemble(settings, server, signer=signer, registry=registry, figures=Figures(daemon.metrics))
    parts.watchdog.start()
    daemon.stack.callback(parts.watchdog.stop)
    if parts.extender is not None:
        daemon.stack.push_async_callback(parts.extender.close)
    daemon.stack.push_async_callback(_hand_back, parts)
    _log.info("allocations are signed", key=signer.key.id)
    daemon.tasks.start(signer.keep_fresh(), name="signing key")
    return SchedulerService(settings, daemon, server, parts)


class SchedulerService:
    def __init__(self, settings: SchedulerSettings, daemon: Daemon, server: ApiServer, parts: Parts) -> None:
        self._daemon, self._parts = daemon, parts
        self._leader = Leader(
            parts,
            server,
            namespace=settings.namespace,
            tasks=daemon.tasks,
            health=daemon.health,
            known=_leave_alone_what_stays,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        if self._parts.extender is not None:
            await self._parts.extender.open(self._daemon.tasks)
        await until_stopped(self._leader.lead(), stopping)


async def _hand_back(parts: Parts) -> None:
    """Bindings under way may end, in both modes at once, and the next scheduler may lead without waiting."""
    parts.worker.stop()
    ways = [parts.worker.settle(SETTLE_S)]
    if parts.extender is not None:
        ways.append(parts.extender.settle(SETTLE_S))
    await asyncio.gather(*ways)
    if parts.elector is not None:
        await parts.elector.release()


def _leave_alone_what_stays() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
