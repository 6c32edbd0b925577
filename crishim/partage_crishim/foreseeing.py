"""Asks the runtime ahead of a create for what the create would have to wait for: handlers of sandboxes, a list in time.

kubelet runs a sandbox, asks for its status, and then creates containers in it. So a status that is asked for soon after
a sandbox was begun says that creates are near. Whoever is not foreseen, such as two sandboxes at once of which one is
late, costs its create the question and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from partage_crishim.containerd import Containerd
from partage_crishim.deciding.errors import NodeNotReady
from partage_crishim.verdicts import RUN_SANDBOX, SANDBOX_STATUS

WITHIN_S: Final = 60.0
"""A sandbox whose status is not asked for by then has failed."""
_MOST: Final = 256


class Foresight:
    """`note` is called with the method of every call."""

    def __init__(
        self, containerd: Containerd, *, wanted: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`wanted` says whether this node has anything to grant."""
        self._containerd = containerd
        self._wanted = wanted
        self._clock = clock
        self._begun_s: deque[float] = deque(maxlen=_MOST)
        self._looking: asyncio.Task[None] | None = None

    def note(self, method: str) -> None:
        """Takes note of a call."""
        if method == RUN_SANDBOX:
            self._begun_s.append(self._clock())
        elif method == SANDBOX_STATUS and self._begun_s and self._looking is None:
            self._forget_failed()
            if self._begun_s and self._wanted():
                self._looking = asyncio.ensure_future(self._look())

    async def close(self) -> None:
        """Looks no more."""
        self._begun_s.clear()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    def _forget_failed(self) -> None:
        while self._begun_s and self._begun_s[0] < self._clock() - WITHIN_S:
            self._begun_s.popleft()

    async def _look(self) -> None:
        try:
            with contextlib.suppress(NodeNotReady):  # the create will ask, and say so
                for _ in range(min(await self._containerd.learn_handlers(), len(self._begun_s))):
                    self._begun_s.popleft()
                await self._containerd.listing(fresh=False)
        finally:
            self._looking = None
