"""A lock that allows one daemon of a kind per node: two would overwrite each other's files.

It is a kernel lock (flock), so it is released however its holder ends. A successor waits for a while, because a
DaemonSet and systemd may both start the new daemon while the old one is still stopping.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from partage_base.daemon.errors import AnotherRuns

_AGAIN_S: Final = 0.05


@asynccontextmanager
async def alone(lock: Path, daemon: str, *, within_s: float) -> AsyncGenerator[None]:
    """Holds the file `lock` in the block; raises `AnotherRuns` if another process keeps it for `within_s`."""
    lock.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while not _is_ours(descriptor):
            if loop.time() >= until:
                raise AnotherRuns(f"another {daemon} of this node holds {lock}; stop that one, or this one")
            await asyncio.sleep(_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
