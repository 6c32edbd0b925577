"""Notifications from the broker to processes, and the processes that have not replied yet.

A notification is sent on a process's signals socket. A reply is awaited for at most `PATIENCE_S`. A process that
exceeds that is silent, and is not awaited until it sends something again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.metrics import Counters
from partage_isolation.wire.connection import Connection
from partage_isolation.wire.packets import What, hint

PATIENCE_S: Final = 0.050
"""A running process replies within a millisecond; on a busy machine it may first have to be scheduled."""
_FIRST: Final = 1 << 31

Reply = asyncio.Future[Amounts | None]


@dataclass(slots=True)
class _Recall:
    """A recall of one process's unused credit on one card.

    Only one is outstanding; later requesters wait for the next, since a reply in flight reports what was unused before.
    """

    signals: Connection
    heard: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    number: int = 0
    too_late: asyncio.TimerHandle | None = None
    after: _Recall | None = None


class Notifications:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._numbers: Iterator[int] = itertools.cycle(range(_FIRST, 1 << 32))
        self._reports: dict[int, tuple[Process, Reply]] = {}
        self._recalls: dict[tuple[Process, int], _Recall] = {}

    async def recall(self, who: list[tuple[Process, Connection]], card: int) -> set[Process]:
        """Recall unused credit and wait for it; return the processes that gave it back after this call."""
        asked = {process: self._recalled(process, signals, card) for process, signals in who}
        if asked:
            await asyncio.wait(asked.values(), timeout=PATIENCE_S)
        return {process for process, heard in asked.items() if heard.done() and heard.result()}

    async def report(self, who: list[tuple[Process, Connection, int]]) -> dict[Process, Amounts]:
        """Request usage of the card of that number, and wait for it."""
        asked = [(process, self._reported(process, signals, card)) for process, signals, card in who]
        await self._replies(asked)
        done = [
            (process, reply.result()) for process, reply in asked if reply and reply.done() and not reply.cancelled()
        ]
        return {process: amounts for process, amounts in done if amounts is not None}

    def returned(self, process: Process, card: int, number: int) -> bool:
        """A process returned credit; whether that replied to a recall. Older libraries send no number."""
        recall = self._recalls.get((process, card))
        if recall is None or (process.is_prompt and number != recall.number):
            return False
        self._over(process, card, was_heard=True)
        return True

    def told(self, process: Process, number: int, amounts: Amounts) -> None:
        asked, reply = self._reports.get(number, (None, None))
        if asked is process and reply is not None and not reply.done():
            reply.set_result(amounts)

    # ---- Recalls -----------------------------------------------------------------------------------------------------

    def _recalled(self, process: Process, signals: Connection, card: int) -> asyncio.Future[bool]:
        """Recall credit that is unused from now on; resolves to whether the process replied."""
        known = self._recalls.get((process, card))
        if known is None:
            return self._send(process, card, _Recall(signals))
        if known.after is None:
            known.after = _Recall(signals)
        return known.after.heard

    def _send(self, process: Process, card: int, recall: _Recall) -> asyncio.Future[bool]:
        self._counters.recalls += 1
        self._recalls[process, card] = recall
        recall.number = next(self._numbers)
        recall.too_late = asyncio.get_running_loop().call_later(PATIENCE_S, self._unheard, process, card)
        if not recall.signals.hint(hint(What.RECALL, card, recall.number)):
            self._unheard(process, card)
        return recall.heard

    def _unheard(self, process: Process, card: int) -> None:
        process.is_silent = True
        self._counters.unanswered += 1
        self._over(process, card, was_heard=False)

    def _over(self, process: Process, card: int, *, was_heard: bool) -> None:
        recall = self._recalls.pop((process, card))
        if recall.too_late is not None:
            recall.too_late.cancel()
        recall.heard.set_result(was_heard)
        if recall.after is not None:
            self._send(process, card, recall.after)

    # ---- Reports -----------------------------------------------------------------------------------------------------

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
