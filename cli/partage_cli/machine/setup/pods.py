"""The pods of a machine whose services are down: listed and ended by a containerd that runs for that alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from partage_base.cri import UnaryClient
from partage_cli.machine.places import CONTAINERD_SOCKET
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.setup.errors import NotStarted
from partage_cli.machine.setup.readiness import why_not_ready
from partage_cli.machine.setup.services import CONTAINERD, Service
from partage_cli.machine.setup.supervisor import Supervisor

Say = Callable[[str], None]
GRACE_S: Final = 10
_WITHIN_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.05


@asynccontextmanager
async def runtime_for_now(root: Path, containerd: Service, say: Say) -> AsyncGenerator[MachineRuntime]:
    """Raises `NotStarted` where it does not come up."""
    supervisor = Supervisor(root, [containerd], say=say)
    supervisor.start()
    try:
        try:
            async with asyncio.timeout(_WITHIN_S):
                while await why_not_ready(CONTAINERD, root) is not None:  # noqa: ASYNC110  another process
                    await asyncio.sleep(_LOOK_EVERY_S)
        except TimeoutError:
            raise NotStarted(f"containerd does not answer within {_WITHIN_S:g} s, so pods can't be ended") from None
        with contextlib.closing(MachineRuntime(UnaryClient(root / CONTAINERD_SOCKET))) as runtime:
            yield runtime
    finally:
        await supervisor.stop()


async def end_all(runtime: MachineRuntime) -> tuple[str, ...]:
    """Stops and removes every pod, all at once; their names."""
    containers, sandboxes = await runtime.containers(), await runtime.sandboxes()
    await asyncio.gather(*(runtime.stop(each.id, grace_s=GRACE_S) for each in containers))
    await asyncio.gather(*(_end(runtime, each.id) for each in sandboxes))
    return tuple(sorted(each.name for each in sandboxes))


async def _end(runtime: MachineRuntime, sandbox: str) -> None:
    await runtime.stop_sandbox(sandbox)
    await runtime.remove_sandbox(sandbox)
