"""Waits for verdicts: one task for each held call, cancelled when its verdict is no longer wanted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from partage_crishim.splice.counters import Counters
from partage_crishim.verdicts import Code, Decide, HeldCall, Pass, Refuse, Rewrite, Verdict

_DEFECT: Final = Refuse(Code.INTERNAL, "partage: crishim failed to judge this request; its log says why")
_OUTCOMES: Final = {Pass: "passed", Rewrite: "rewritten", Refuse: "refused"}


class PendingVerdicts:
    """The held calls of one connection."""

    def __init__(self, judge: Decide, counters: Counters, deliver: Callable[[int, Verdict], None]) -> None:
        self._judge = judge
        self._counters = counters
        self._deliver = deliver
        self._tasks: dict[int, asyncio.Task[Verdict]] = {}

    def start(self, stream: int, call: HeldCall) -> None:
        task = asyncio.ensure_future(self._verdict(call))
        self._tasks[stream] = task
        task.add_done_callback(partial(self._done, stream, time.monotonic()))

    def drop(self, stream: int) -> None:
        """Its verdict is no longer wanted."""
        task = self._tasks.get(stream)
        if task is not None:
            task.cancel()

    async def _verdict(self, call: HeldCall) -> Verdict:
        return await self._judge(call)

    def _done(self, stream: int, started: float, task: asyncio.Task[Verdict]) -> None:
        del self._tasks[stream]
        if task.cancelled():
            self._counters.held["dropped"] += 1
            return
        if (error := task.exception()) is not None:
            why = {"message": "a judge raised, which it must not", "exception": error}
            task.get_loop().call_exception_handler(why)
        verdict = _DEFECT if error is not None else task.result()
        self._counters.judging.observe(time.monotonic() - started)
        self._counters.held[_OUTCOMES[type(verdict)]] += 1
        self._deliver(stream, verdict)
