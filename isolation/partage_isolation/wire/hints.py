"""What the broker says unasked, and the processes that have not replied yet.

A hint goes out on a process's signals socket. A reply is waited for no longer than `PATIENCE_S`; a process
that let it pass is silent, and it is not waited for until it says something again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

from partage_isolation.audit.metrics import Counters
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.wire.connection import Connection
from partage_isolation.wire.packets import What, hint

PATIENCE_S: Final = 0.050
"""A process that runs replies within a millisecond; on a busy machine it may first have to be scheduled."""
_FRESH_S: Final = 0.005
"""A process that gave its credit back so short ago is not asked again."""
_FIRST: Final = 1 << 31

Reply = asyncio.Future[Amounts | None]


class Hints:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._numbers: Iterator[int] = itertools.cycle(range(_FIRST, 1 << 32))
        self._reports: dict[int, tuple[Process, Reply]] = {}
        self._recalls: dict[tuple[Process, int], Reply] = {}
        self._gave_s: WeakKeyDictionary[Process, float] = WeakKeyDictionary()

    async def recall(self, who: list[tuple[Process, Connection]], card: int, *, lately_too: bool = False) -> None:
        """Recalls what they don't use, and waits for it; `lately_too`: also from those that did so a moment ago."""
        lately_s = time.monotonic() - _FRESH_S
        due = [each for each in who if lately_too or self._gave_s.get(each[0], 0.0) < lately_s]
        await self._replies([(process, self._recalled(process, signals, card)) for process, signals in due])

    async def report(self, who: list[tuple[Process, Connection, int]]) -> dict[Process, Amounts]:
        """Asks them what they use of the card of that number, and waits for it."""
        asked = [(process, self._reported(process, signals, card)) for process, signals, card in who]
        await self._replies(asked)
        done = [
            (process, reply.result()) for process, reply in asked if reply and reply.done() and not reply.cancelled()
        ]
        return {process: amounts for process, amounts in done if amounts is not None}

    def returned(self, process: Process, card: int) -> None:
        reply = self._recalls.get((process, card))
        if reply is not None and not reply.done():
            self._gave_s[process] = time.monotonic()
            reply.set_result(None)

    def told(self, process: Process, number: int, amounts: Amounts) -> None:
        asked, reply = self._reports.get(number, (None, None))
        if asked is process and reply is not None and not reply.done():
            reply.set_result(amounts)

    def _recalled(self, process: Process, signals: Connection, card: int) -> Reply | None:
        """One question for all who wait for it."""
        known = self._recalls.get((process, card))
        if known is not None and not known.done():
            return known
        self._counters.recalls += 1
        if not signals.hint(hint(What.RECALL, card, next(self._numbers))):
            return None
        reply = self._recalls[process, card] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda done: self._recall_over(process, card, done))
        return reply

    def _recall_over(self, process: Process, card: int, reply: Reply) -> None:
        if self._recalls.get((process, card)) is reply:
            del self._recalls[process, card]

    def _reported(self, process: Process, signals: Connection, card: int) -> Reply | None:
        number = next(self._numbers)
        if not signals.hint(hint(What.REPORT, card, number)):
            return None
        reply: Reply = asyncio.get_running_loop().create_future()
        self._reports[number] = process, reply
        reply.add_done_callback(lambda _: self._reports.pop(number, None))
        return reply

    async def _replies(self, asked: list[tuple[Process, Reply | None]]) -> None:
        waiting = {reply for _, reply in asked if reply is not None}
        try:
            if waiting:
                await asyncio.wait(waiting, timeout=PATIENCE_S)
        finally:
            silent = [process for process, reply in asked if reply is None or not reply.done()]
            for reply in waiting:
                reply.cancel()
        for process in silent:
            process.is_silent = True
            self._counters.unanswered += 1
