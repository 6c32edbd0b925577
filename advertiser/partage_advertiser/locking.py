"""One advertiser for a node: two would write over each other for ever.

The lock is the kernel's, so it ends with its holder however that ends. A successor waits a little, since a DaemonSet
and systemd both start the new one while the old one may still be ending.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from typing import Final

from partage_advertiser.errors import AnotherRuns

NAME: Final = "run/partage/advertiser/lock"
_AGAIN_S: Final = 0.2


class NodeLock:
    """Held from `take` to `release`."""

    def __init__(self, root: Path) -> None:
        self._path = root / NAME
        self._descriptor: int | None = None

    async def take(self, *, within_s: float) -> None:
        """Ours now, or `AnotherRuns`."""
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            await self._locked(descriptor, within_s)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Lets the next one have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    async def _locked(self, descriptor: int, within_s: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if loop.time() >= until:
                    raise AnotherRuns(
                        f"another advertiser of this node holds {self._path}; stop that one, or this one"
                    ) from None
                await asyncio.sleep(_AGAIN_S)
            else:
                return
