"""The end of a container as an event: the kernel says when its first process has ended, the runtime how.

The runtime has no event for it that all versions know. It learns of the end a moment after the kernel, so it is asked
again and again for that moment, and no longer.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final, Protocol

from partage_base.cri.errors import PeerAway, PeerRefused, PeerSlow
from partage_base.processes import process_descriptor
from partage_cli.machine.runtime.kernel_events import readable
from partage_cli.machine.runtime.messages import ContainerState

_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 1.0
_NOT_FOUND: Final = 5


class States(Protocol):
    async def container(self, container_id: str) -> ContainerState: ...


async def ended(runtime: States, container_id: str) -> ContainerState | None:
    """Returns when the container has ended, also one that never ran; None: it was removed.

    A runtime that is away is waited for: what runs goes on without it.
    """
    pause_s = _FIRST_PAUSE_S
    while True:
        state = await _state(runtime, container_id)
        if state is None or state.state in ("exited", "unknown"):
            return state
        if state.pid is not None and await _process_ended(runtime, container_id, state.pid):
            pause_s = _FIRST_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


async def _process_ended(runtime: States, container_id: str, pid: int) -> bool:
    """Whether it was waited for; without waiting where the process is gone, which the runtime may not know yet."""
    descriptor = process_descriptor(pid)
    if descriptor is None:
        return False
    try:
        # Only a process that was there before the runtime said "runs" is the container's: numbers are used again.
        state = await _state(runtime, container_id)
        if state is None or state.state != "running" or state.pid != pid:
            return True
        await readable(descriptor)
    finally:
        os.close(descriptor)
    return True


async def _state(runtime: States, container_id: str) -> ContainerState | None:
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return await runtime.container(container_id)
        except PeerRefused as refused:
            if refused.status == _NOT_FOUND:
                return None
            raise
        except (PeerAway, PeerSlow):
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
