"""Deferred requests, which wait a moment without blocking others.

Processes that share the limit give back unused credit, and a sample shows what is really free; then the request is
decided. A refusal is re-evaluated in rounds until it is confirmed or the time is over. In the latter case the response
says that it is unconfirmed, and the process may ask again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

from partage_base.peers import is_stopped
from partage_isolation.audit.facts import Sample
from partage_isolation.ledger import rounds
from partage_isolation.ledger.budget import Budget, Process, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.quota_accounting import (
    Decide,
    Defer,
    Lent,
    NoRoom,
    Out,
    Patience,
    Refused,
    Verdict,
    holders,
    lenders,
)
from partage_isolation.metrics import Counters
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import Session
from partage_isolation.wire.notifications import Notifications
from partage_isolation.wire.packets import Flag, Packet, Result
from partage_isolation.wire.sampler import Sampler
from partage_isolation.wire.served import Registry
from partage_isolation.wire.watch import BackgroundTasks
from partage_plugins.api.names import CardId

LONGEST_S: Final = 0.100
"""A request at the limit gets its response by then; a program waits for it in an allocation."""
_AGAIN_S: Final = (0.0, 0.001, 0.002, 0.005, 0.010, 0.020, 0.040)
"""Pauses between rounds: active processes calm down, and a driver needs a moment to free memory of dead processes."""
_AWAKE_S: Final = 3.0
"""After a start, before NVML has first responded: free memory is unknown, and a refusal might be wrong."""
_SHORTEST_S: Final = 0.020
"""Minimum for a sample, also if other processes were slow to give back."""


@dataclass(frozen=True, slots=True)
class _Question:
    process: Process
    budget: Budget
    card: int
    decide: Decide

    @property
    def card_id(self) -> CardId:
        return self.budget.cards[self.card].id


class DeferredRequests:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        sampler: Sampler,
        hints: Notifications,
        background_tasks: BackgroundTasks,
        counters: Counters,
        registry: Registry,
    ) -> None:
        self._ledger, self._sampler, self._hints, self._background_tasks = ledger, sampler, hints, background_tasks
        self._counters, self._signals_of = counters, registry.signals_of
        self._settled_s = 0.0
        """Until then growth is deferred, not refused: the ledger was lost, and processes report what they hold."""

    def settle(self, for_s: float) -> None:
        """After the loss of the ledger: lend nothing more for this long, while processes report what they hold."""
        self._ledger.accounting.is_settling = True
        self._settled_s = time.monotonic() + for_s
        asyncio.get_running_loop().call_later(for_s, self._settled)

    def _settled(self) -> None:
        self._ledger.accounting.is_settling = False

    def defer(self, session: Session, packet: Packet, verdict: Defer, decide: Decide) -> None:
        """Respond later. A process has one deferred request at a time; a second one is refused."""
        process = session.process
        budget = self._ledger.containers[process.key]
        if process in budget.waiting:
            _answer(session, packet, Refused(verdict.lent, is_sure=False))
            return
        self._counters.deferred += 1
        budget.waiting[process] = packet.card
        self._background_tasks.start(self._wait(session, packet, _Question(process, budget, packet.card, decide)))

    async def recall(self, budget: Budget, card: int, asker: Process | None = None) -> bool:
        """Recall others' credit; return whether all that could have spent it meanwhile gave it back or are stopped."""
        could = [(process, self._signals_of(process)) for process in lenders(budget, card, asker)]
        asked = [(process, signals) for process, signals in could if signals]
        heard = await self._hints.recall(asked, card)
        return all(process in heard or is_stopped(process.pid) for process, _ in holders(budget, card, asker))

    async def _wait(self, session: Session, packet: Packet, asked: _Question) -> None:
        try:
            decided = await self._decided(asked)
        finally:
            del asked.budget.waiting[asked.process]
        _answer(session, packet, decided)

    async def _decided(self, asked: _Question) -> Verdict:
        longest_s = LONGEST_S if self._sampler.has_answered else _AWAKE_S
        until, is_sure = max(time.monotonic() + longest_s, self._settled_s), False
        for pause_s in chain(_AGAIN_S, repeat(_AGAIN_S[-1])):
            began = rounds.begin(asked.budget, asked.card, asked.process, _stopped(asked))
            are_heard = await self.recall(asked.budget, asked.card, asked.process)
            now, is_seen = await self._looked(asked, until)
            if isinstance(now, Lent | NoRoom | Out):
                return now
            is_sure = are_heard and is_seen and rounds.is_sure(asked.budget, asked.card, began)
            if is_sure or time.monotonic() >= until or not (is_seen or self._may_see):
                break
            await asyncio.sleep(min(pause_s, max(0.0, until - time.monotonic())))
        last = asked.decide(patience=Patience.NONE)
        return Refused(last.lent, is_sure) if isinstance(last, Refused) else last

    async def _looked(self, asked: _Question, until: float) -> tuple[Verdict, bool]:
        """The decision now, after a sample if that may change it; and whether a sample's information is complete."""
        now = asked.decide(patience=Patience.PROOF)
        if not isinstance(now, Defer):
            return now, True
        sample = await self._sample(asked.card_id, until)
        return asked.decide(patience=Patience.PROOF), sample is not None and not self._settling

    async def _sample(self, card: CardId, until: float) -> Sample | None:
        try:
            async with asyncio.timeout(max(_SHORTEST_S, until - time.monotonic())):
                return await self._sampler.sample(card, exact_of=self._sampler.unmeasured(card))
        except TimeoutError:
            return None

    @property
    def _may_see(self) -> bool:
        """A failed sample may succeed later, within the time available."""
        return self._settling or not self._sampler.has_answered

    @property
    def _settling(self) -> bool:
        return time.monotonic() < self._settled_s


def _stopped(asked: _Question) -> frozenset[Process]:
    """Stopped processes among those that don't respond: one that runs would reply."""
    others = (process for process, _ in holders(asked.budget, asked.card, asked.process))
    quiet = (process for process in others if process.is_silent or process.state is not State.LIVE)
    return frozenset(process for process in quiet if is_stopped(process.pid))


def _answer(session: Session, packet: Packet, verdict: Verdict) -> None:
    account = session.process.accounts.get(packet.card)
    if session.calls is not None:
        session.calls.send(verdict_answer(packet, verdict, account.returns if account else 0))


_OK: Final = int(Result.OK)
"""A plain number: most responses have it."""


def verdict_answer(packet: Packet, verdict: Verdict, returns: int) -> bytes:
    """Encode a decision; `returns` is how often the process has given back so far."""
    if isinstance(verdict, Lent):
        return wire.lent_answer(packet, _OK, verdict.lent, returns)
    if isinstance(verdict, NoRoom):
        return wire.answer(packet, Result.FULL)
    if isinstance(verdict, Out):
        return wire.answer(packet, Result.OUT)
    is_sure = isinstance(verdict, Refused) and verdict.is_sure
    return wire.lent_answer(packet, Result.NO, verdict.lent, returns, Flag.SURE if is_sure else 0)
