"""A machine without systemd: runs its services under one supervisor until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_cli.machine.setup.decision import Decision
from partage_cli.machine.setup.errors import NotStarted
from partage_cli.machine.setup.readiness import why_not_ready, why_not_whole
from partage_cli.machine.setup.services import services
from partage_cli.machine.setup.supervisor import Supervisor

Say = Callable[[str], None]
UP_WITHIN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.05
_LOG: Final = ("--log-level", "warning", "--log-format", "text")


async def live(root: Path, decision: Decision, *, say: Say, up: Callable[[], None]) -> None:
    """Run the services; calls `up` once containers can be placed. Containers outlive it. Raises `NotStarted`."""
    every = services(root, simulated=bool(decision.simulated), python=sys.executable, log=_LOG)
    supervisor, stopping = Supervisor(root, every, say=say), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopping.set)
    supervisor.start()
    asked = asyncio.create_task(stopping.wait())
    coming = asyncio.create_task(come_up(root, [each.name for each in every]))
    try:
        await asyncio.wait({asked, coming}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            await coming
            up()
        await asked
    finally:
        coming.cancel()
        say("ending; containers go on")
        await supervisor.stop()


async def come_up(root: Path, names: list[str]) -> None:
    """Wait until all services answer and are in force; raises `NotStarted` after a timeout."""
    try:
        async with asyncio.timeout(UP_WITHIN_S):
            await asyncio.gather(*(_ready(root, name) for name in names))
            while await why_not_whole(root) is not None:  # noqa: ASYNC110  other processes, which tell no one
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        why = await _why_not(root, names)
        raise NotStarted(f"not up within {UP_WITHIN_S:g} s: {why}") from None


async def _ready(root: Path, name: str) -> None:
    while await why_not_ready(name, root) is not None:  # noqa: ASYNC110  as above
        await asyncio.sleep(_LOOK_EVERY_S)


async def _why_not(root: Path, names: list[str]) -> str:
    found = [f"{name}: {why}" for name in names if (why := await why_not_ready(name, root)) is not None]
    return "; ".join(found) or await why_not_whole(root) or "it is by now; `partage up` again"
