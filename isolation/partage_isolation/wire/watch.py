"""Short background tasks that packets or events start; all end with the broker."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from partage_base.peers import Peer
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.quota_accounting import provable
from partage_isolation.wire.background_work import BackgroundWork
from partage_isolation.wire.sampler import Sampler
from partage_isolation.wire.served import Registry
from partage_plugins.api.names import CardId


class BackgroundTasks:
    """Background tasks in progress."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        """`failed` is called with a task's unexpected exception."""
        self._failed = failed
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)


_LET_GO_AFTER_S: Final = (0.005, 0.010, 0.020, 0.040)
"""The driver frees a process's memory when it closes its files, which may be after the exit is reported."""

_MEASURED_AFTER_S: Final = (0.010, 0.050, 0.100)
_MEASURED_WITHIN_S: Final = 0.2
"""After this time the view of a card shows the usual size of a context instead."""


class Watch:
    """Samples and cleanup that packets and deaths trigger."""

    def __init__(
        self, ledger: Ledger, sampler: Sampler, *, background_tasks: BackgroundTasks, registry: Registry
    ) -> None:
        self._ledger, self._sampler, self._background_tasks, self._registry = (
            ledger,
            sampler,
            background_tasks,
            registry,
        )
        self._loop, self.deaths = asyncio.get_running_loop(), BackgroundWork()
        self._pidfds: dict[Process, int] = {}
        self._proving: set[CardId] = set()
        self._letting_go: dict[CardId, asyncio.Event] = {}
        self._measuring: dict[tuple[Process, int], list[Callable[[], None]]] = {}
        self._grew: set[tuple[Process, int]] = set()
        """Since the current sample began."""

    def close(self) -> None:
        self.deaths.close()
        for process in list(self._pidfds):
            self._forget(process)

    # ---- Life and death ----------------------------------------------------------------------------------------------

    def watch(self, process: Process, peer: Peer) -> None:
        """Watch for the process's end; takes ownership of `peer.pidfd`."""
        if process in self._pidfds:
            os.close(peer.pidfd)
            return
        self._pidfds[process] = peer.pidfd
        self._loop.add_reader(peer.pidfd, self._dead, process)

    def died(self, process: Process) -> None:
        """Process a death: its memory is returned once samples of the cards no longer show it."""
        cards = [self._card(process, number) for number, account in process.accounts.items() if account.total]
        self._ledger.lives.died(process, time.monotonic_ns())
        self._registry.ended(process)
        for card in cards:
            if card is not None:
                self.let_go(card)

    def let_go(self, card: CardId) -> None:
        """Sample the card until no dead process is charged for it."""
        news = self._letting_go.get(card)
        if news is not None:
            news.set()
            return
        self._letting_go[card] = asyncio.Event()
        self._background_tasks.start(self._let_go(card))

    async def _let_go(self, card: CardId) -> None:
        news = self._letting_go[card]
        try:
            for pause_s in (*_LET_GO_AFTER_S, 0.0):
                await self._sampler.sample(card)
                while news.is_set():
                    news.clear()
                    await self._sampler.sample(card)
                if not self._sampler.has_dead(card):
                    return
                await asyncio.sleep(pause_s)
        finally:
            del self._letting_go[card]

    def _dead(self, process: Process) -> None:
        """Queue a death: hundreds may die at once, and requests must not wait for all of them."""
        self._forget(process)
        self.deaths.add(process.key, partial(self.died, process))

    def _forget(self, process: Process) -> None:
        pidfd = self._pidfds.pop(process)
        self._loop.remove_reader(pidfd)
        os.close(pidfd)

    # ---- Requests and samples ----------------------------------------------------------------------------------------

    def doubts(self, process: Process, card: int) -> None:
        """Take a sample now where the next request may need it."""
        budget = self._ledger.containers[process.key]
        is_claim = process.accounts[card].claims_more
        if is_claim or budget.room(card) < provable(budget, card):
            self.prove(budget.cards[card].id)

    def measure(self, process: Process, card: int) -> None:
        """Take a sample with the process's reported usage: it has made a context, or has grown."""
        found = self._card(process, card)
        if found is None:
            return
        if (process, card) in self._measuring:
            self._grew.add((process, card))
            return
        self._measuring[process, card] = []
        self._background_tasks.start(self._measure(found, card, process))

    def once_measured(self, process: Process, card: int, then: Callable[[], None]) -> bool:
        """Call `then` once such a sample was taken; False if none is in progress."""
        waiting = self._measuring.get((process, card))
        if waiting is None or waiting:
            return False  # a process has one request at a time
        waiting.append(then)
        return True

    def prove(self, card: CardId) -> None:
        if card not in self._proving:
            self._proving.add(card)
            self._background_tasks.start(self._proved(card))

    async def _proved(self, card: CardId) -> None:
        try:
            await self._sampler.sample(card)
        finally:
            self._proving.discard(card)

    async def _measure(self, card: CardId, number: int, process: Process) -> None:
        waiting = self._measuring[process, number]
        late = asyncio.get_running_loop().call_later(_MEASURED_WITHIN_S, _all, waiting)
        try:
            for pause_s in (*_MEASURED_AFTER_S, 0.0):
                self._grew.discard((process, number))
                await self._sampler.sample(card, exact_of=(process,))
                account = process.accounts.get(number)
                if account is None or not account.is_made:
                    if (process, number) in self._grew:
                        continue
                    break
                await asyncio.sleep(pause_s)  # it or the driver was busy; the audit retries later
        finally:
            late.cancel()
            self._grew.discard((process, number))
            del self._measuring[process, number]
            _all(waiting)

    def _card(self, process: Process, number: int) -> CardId | None:
        budget = self._ledger.containers.get(process.key)
        return budget.cards[number].id if budget is not None and number < len(budget.cards) else None


def _all(calls: list[Callable[[], None]]) -> None:
    while calls:
        calls.pop()()
