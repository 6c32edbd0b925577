"""The parent's side of the child process that calls the driver for checkpoints.

A child runs only while one is needed, with one call at a time. A child that exceeds a call's time limit is killed; one
that can't be killed is left behind, and while it exists no other is started. The effect of a call without a response is
found by the next child's state query.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from partage_gpu.nvml.process import ChildProcess
from partage_gpu.nvml.wire import Ended
from partage_isolation.audit.threads import soon
from partage_isolation.checkpoint.messages import WORDS, BrokerReport, Call, Called, Opened, Step
from partage_isolation.errors import BrokerError
from partage_isolation.ledger.pieces import ProcessId
from partage_isolation.urgency import goes_as_others

CHILD: Final = "partage_isolation.checkpoint.child"
_START_S: Final = 30.0
"""Initializing an unused card takes seconds."""
_SLACK_S: Final = 30.0
_SLOWEST: Final = 100 << 20
"""Bytes per second; a real card moved a gigabyte and more."""


class CannotCall(BrokerError):
    """The driver can't be called for checkpoints, or does not respond."""


class DriverCalls:
    """One child, from its start to its end."""

    def __init__(self, command: tuple[str, ...]) -> None:
        """Raises OSError or RuntimeError if no process can be created."""
        self._loop = asyncio.get_running_loop()
        self._said: asyncio.Queue[BrokerReport | str] = asyncio.Queue()
        self.child = ChildProcess(
            command,
            WORDS,
            hears=lambda message: soon(self._loop, self._said.put_nowait, message),
            ends=lambda how: soon(self._loop, self._said.put_nowait, how),
        )
        goes_as_others(self.child.pid)

    async def open(self) -> None:
        """Open the driver; raises `CannotCall` where it has no checkpoints."""
        match await self._answer(_START_S):
            case Opened(why=""):
                pass
            case Opened(why=why):
                raise CannotCall(why)
            case Called():
                raise CannotCall("the process that calls the driver answered what it was not asked")

    async def call(self, step: Step, who: ProcessId, *, patience_ms: int = 0, amount: int = 0) -> Called:
        """Make a call that moves `amount` bytes. Raises `CannotCall` where there is no response."""
        self.child.send(Call(step, *who, patience_ms))
        answer = await self._answer(_SLACK_S + patience_ms / 1000 + amount / _SLOWEST)
        if not isinstance(answer, Called):
            raise CannotCall("the process that calls the driver answered what it was not asked")
        return answer

    async def _answer(self, within_s: float) -> Opened | Called:
        try:
            async with asyncio.timeout(within_s):
                said = await self._said.get()
        except TimeoutError:
            raise CannotCall(f"the driver did not answer within {within_s:.0f} s") from None
        if isinstance(said, str):
            raise CannotCall(f"the process that calls the driver {said}")
        if isinstance(said, Ended):
            raise CannotCall(said.trouble.sentence)
        return said


class Checkpoints:
    """Used from the loop only; one at a time."""

    def __init__(self, driver_root: Path, *, paused: Callable[[], bool] = lambda: False) -> None:
        self._begin = partial(DriverCalls, (sys.executable, "-P", "-m", CHILD, str(driver_root)))
        self._paused = paused
        self._turn = asyncio.Lock()
        self._left: list[ChildProcess[Call, BrokerReport]] = []

    @asynccontextmanager
    async def calls(self) -> AsyncGenerator[DriverCalls]:
        """A child with the driver open; killed afterwards, even during a call. Raises `CannotCall`."""
        async with self._turn:
            self._left = [child for child in self._left if not child.is_dead]
            if self._paused():
                raise CannotCall("the driver is to be let go; try again once it is back")
            if self._left:
                raise CannotCall("an earlier call hangs in the driver; restart the node if that stays so")
            try:
                session = self._begin()
            except (OSError, RuntimeError) as error:
                raise CannotCall(f"the process that calls the driver cannot be started: {error}") from error
            try:
                await session.open()
                yield session
            finally:
                self._left.append(session.child)
                await asyncio.shield(asyncio.to_thread(session.child.end))
