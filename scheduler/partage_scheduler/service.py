"""The scheduler daemon: waits for leadership, syncs its cache, and places pods until it is stopped.

It lists and watches nothing before it leads, so that its lists include all writes of the previous leader. Losing
leadership ends the process. At shutdown it waits for bindings in flight, then releases the Lease.
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
"""Time for bindings in flight at shutdown."""
_COLLECT_AFTER: Final = 50_000
"""Collection threshold in new objects; a large cluster's cache has a million, which need not be scanned."""
_log = structlog.get_logger()


async def start(settings: SchedulerSettings, daemon: Daemon) -> SchedulerService:
    """Requires keys, plugins and API access; the API server itself need not be reachable yet."""
    signer, registry = signer_of(settings), plugins()
    server = await daemon.stack.enter_async_context(await api_server(settings))
    parts = assemble(settings, server, signer=signer, registry=registry, figures=Figures(daemon.metrics))
    parts.watchdog.start()
    daemon.stack.callback(parts.watchdog.stop)
    if parts.extender is not None:
        daemon.stack.push_async_callback(parts.extender.close)
    daemon.stack.push_async_callback(_hand_back, parts)
    _log.info("signing key in use", key=signer.key.id)
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
    """Waits for bindings in flight, in both modes at once, and releases the Lease so that a standby leads at once."""
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
