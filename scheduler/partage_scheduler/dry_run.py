"""One-shot modes of the command: check the settings, or show where each pending pod would go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import click

from partage_base.daemon import logs
from partage_base.daemon.cli import CHECK_SETTINGS, Instead
from partage_base.kube import ApiServer
from partage_scheduler.api.streams import all_streams
from partage_scheduler.assembly import api_server
from partage_scheduler.core import Core, new_core, plugins
from partage_scheduler.cycle import Bind, ScheduleResult
from partage_scheduler.settings import SchedulerSettings

DRY_RUN: Final = "dry-run"
_PAGE: Final = 1000


def _do(settings: SchedulerSettings, modes: frozenset[str]) -> int:
    logs.configure("scheduler", level="warning", log_format="text")
    core = new_core(settings, plugins())
    if DRY_RUN in modes:
        asyncio.run(_show(settings, core))
    return 0


INSTEAD: Final = Instead[SchedulerSettings](
    flags={
        DRY_RUN: "Look once, say where each pod that waits would go or why nowhere, and write nothing.",
        **CHECK_SETTINGS,
    },
    words=(),
    do=_do,
)


async def _show(settings: SchedulerSettings, core: Core) -> None:
    async with await api_server(settings) as server:
        await look(server, core, namespace=settings.namespace, claims=settings.claims)
    for line in would_be(core):
        click.echo(line)


async def look(server: ApiServer, core: Core, *, namespace: str, claims: bool = False) -> None:
    for stream, sink in all_streams(core.event_handlers, namespace=namespace, claims=claims):
        listing = await server.list(stream.path, stream.item_type, fields=stream.fields, limit=_PAGE)
        sink.listed(listing.items, listing.undecodable)
        for each in listing.undecodable:
            sink.undecodable(each)


def verdicts(core: Core) -> Iterator[ScheduleResult]:
    """Results for all pending pods, in scheduling order; what one pod gets is not available to the next."""
    while (waiting := core.queue.next(now := time.monotonic())) is not None:
        yield from core.cycle.decide(waiting, now)


def would_be(core: Core) -> Iterator[str]:
    """One line per pending pod."""
    for verdict in verdicts(core):
        pod = verdict.pod
        where = f"to {verdict.decision.node}" if isinstance(verdict, Bind) else f"nowhere: {verdict.message}"
        yield f"{pod.namespace}/{pod.name}  {where}"
