"""Does ahead of a create what it would have to wait for: asks for sandboxes and a list, verifies, lets plugins look.

kubelet runs a sandbox, asks for its status, and then creates containers in it, each right after it asked for the status
of its image. So a status that is asked for soon after a sandbox was begun says that creates are near. Whoever is not
foreseen, such as two sandboxes at once of which one is late, costs its create the question and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Final

from partage_crishim.containerd import Containerd
from partage_crishim.deciding.errors import NodeNotReady
from partage_crishim.verdicts import CREATE_CONTAINER, IMAGE_STATUS, RUN_SANDBOX, SANDBOX_STATUS
from partage_plugins.errors import PartageError

WITHIN_S: Final = 60.0
"""A sandbox whose status is not asked for by then has failed."""
_MOST: Final = 256


class Foresight:
    """`note` is called with the method of every call."""

    def __init__(  # noqa: PLR0913  what it asks for has its names
        self,
        containerd: Containerd,
        *,
        wanted: Callable[[], bool],
        expected: Callable[[Mapping[str, str]], int],
        rehearse: Callable[[], None],
        look_ahead: Callable[[], Coroutine[None, None, None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wanted` says whether this node has anything to grant.

        `expected` takes the annotations of a new pod and says how many of its containers have grants. Until as many
        creates have begun, or some time has passed, `rehearse` and `look_ahead` are called after each question for an
        image's status.
        """
        self._containerd = containerd
        self._rehearse, self._look_ahead = rehearse, look_ahead
        self._expects = 0
        self._expects_until_s = 0.0
        self._expected = expected
        self._wanted = wanted
        self._clock = clock
        self._begun_s: deque[float] = deque(maxlen=_MOST)
        self._looking: asyncio.Task[None] | None = None
        self._ahead: asyncio.Task[None] | None = None

    def note(self, method: str) -> None:
        """Takes note of a call."""
        if method == RUN_SANDBOX:
            self._begun_s.append(self._clock())
        elif method == CREATE_CONTAINER:
            self._expects = max(0, self._expects - 1)
        elif method == IMAGE_STATUS:
            if self._expects and self._clock() < self._expects_until_s:
                self._come_near()
        elif method == SANDBOX_STATUS and self._begun_s and self._looking is None:
            self._forget_failed()
            if self._begun_s and self._wanted():
                self._looking = asyncio.ensure_future(self._look())

    async def close(self) -> None:
        """Looks no more."""
        self._begun_s.clear()
        tasks = [each for each in (self._looking, self._ahead) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _come_near(self) -> None:
        if self._ahead is None:
            self._ahead = asyncio.ensure_future(self._let_look_ahead())
        asyncio.get_running_loop().call_soon(self._rehearse)

    async def _let_look_ahead(self) -> None:
        try:
            with contextlib.suppress(PartageError, OSError):  # what counts is said by the create
                await self._look_ahead()
        finally:
            self._ahead = None

    def _forget_failed(self) -> None:
        while self._begun_s and self._begun_s[0] < self._clock() - WITHIN_S:
            self._begun_s.popleft()

    def _expect(self, annotations: Mapping[str, str]) -> None:
        if containers := self._expected(annotations):
            now_s = self._clock()
            self._expects = containers + (self._expects if now_s < self._expects_until_s else 0)
            self._expects_until_s = now_s + WITHIN_S

    async def _look(self) -> None:
        try:
            with contextlib.suppress(NodeNotReady):  # the create will ask, and say so
                new = await self._containerd.new_sandboxes()
                # The first time there are old ones among them, of which nobody saw the beginning.
                for sandbox in new[max(0, len(new) - len(self._begun_s)) :]:
                    self._begun_s.popleft()
                    self._expect(sandbox.annotations)
                await self._containerd.listing(fresh=False)
        finally:
            self._looking = None
