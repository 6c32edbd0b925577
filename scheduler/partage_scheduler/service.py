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
    """Brings it up; what a start that failed had taken is given back too."""
    service = SchedulerService(settings, daemon)
    daemon.stack.push_async_callback(service.stop)
    await service.start()
    return service


class SchedulerService:
    """A `partage_base.daemon.life.Running`, once it has come up."""

    def __init__(self, settings: SchedulerSettings, daemon: Daemon) -> None:
        self._settings, self._daemon = settings, daemon
        self._figures = Figures(daemon.metrics)
        self._server: ApiServer | None = None
        self._parts: Parts | None = None

    async def start(self) -> None:
        """Keys, plugins and access are there; the API server need not be."""
        signer, registry = signer_of(self._settings), plugins()
        self._server = await api_server(self._settings)
        self._parts = assemble(self._settings, self._server, signer=signer, registry=registry, figures=self._figures)
        self._parts.watchdog.start()
        _log.info("allocations are signed", key=signer.key.id)

    async def run(self, stopping: asyncio.Event) -> None:
        """Leads, as soon as it may."""
        if self._server is None or self._parts is None:
            raise RuntimeError("run before start")
        tasks, health = self._daemon.tasks, self._daemon.health
        if self._parts.extender is not None:
            await self._parts.extender.open(tasks)
        leader = Leader(
            self._parts,
            self._server,
            namespace=self._settings.namespace,
            tasks=tasks,
            health=health,
            known=self._leave_alone_what_stays,
        )
        leading = asyncio.create_task(leader.lead(), name="leading")
        asked = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({leading, asked}, return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                leading.result()
            await stopping.wait()
        finally:
            asked.cancel()
            leading.cancel()

    async def stop(self) -> None:
        """Bindings under way may end, and the next one may lead at once."""
        try:
            if self._parts is not None:
                self._parts.worker.stop()
                await self._settled(self._parts)
                if self._parts.elector is not None:
                    await self._parts.elector.release()
        finally:
            if self._parts is not None:
                self._parts.watchdog.stop()
                if self._parts.extender is not None:
                    await self._parts.extender.close()
            if self._server is not None:
                await self._server.close()

    async def _settled(self, parts: Parts) -> None:
        """Both ways of binding at once: they have the same few seconds."""
        ways = [parts.worker.settle(SETTLE_S)]
        if parts.extender is not None:
            ways.append(parts.extender.settle(SETTLE_S))
        await asyncio.gather(*ways)

    def _leave_alone_what_stays(self) -> None:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
