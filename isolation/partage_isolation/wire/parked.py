"""Questions that wait a moment, and hold up no other.

Siblings give back what they don't use, a sample shows what is really free; then they are decided, whichever way.
"""

from __future__ import annotations

import asyncio
import time
from itertools import chain, repeat
from typing import Final

from partage_isolation.audit.facts import Sample
from partage_isolation.audit.metrics import Counters
from partage_isolation.ledger.budget import Budget
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.loans import Decide, Park, Patience, Refused, Verdict
from partage_isolation.wire.hints import Hints
from partage_isolation.wire.packets import Packet
from partage_isolation.wire.sampler import Sampler
from partage_isolation.wire.served import Registry, Session
from partage_isolation.wire.views import verdict_answer
from partage_isolation.wire.watch import Chores
from partage_plugins.vocabulary.names import CardId

LONGEST_S: Final = 0.100
"""A question at the limit is answered by then; a program waits for it in an allocation."""
_AGAIN_S: Final = (0.002, 0.005, 0.010, 0.020, 0.040)
"""Between samples: a driver takes a moment to free what it was told to."""
_AWAKE_S: Final = 3.0
"""After a start, before NVML has ever answered: what is free is not known, and a refusal might be wrong."""
_SHORTEST_S: Final = 0.020
"""For a sample, also where siblings took long to give back."""


class ParkedQuestions:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        sampler: Sampler,
        hints: Hints,
        chores: Chores,
        counters: Counters,
        registry: Registry,
    ) -> None:
        self._ledger, self._sampler, self._hints, self._chores = ledger, sampler, hints, chores
        self._counters, self._signals_of = counters, registry.signals_of
        self._waiting: set[Session] = set()
        self._settled_s = 0.0
        """Until then growth is not refused but waits: the ledger was lost, and processes come to say what they hold."""

    def settle(self, for_s: float) -> None:
        """The ledger was lost: so long nothing more is lent, while processes say what they hold."""
        self._ledger.lending.is_settling = True
        self._settled_s = time.monotonic() + for_s
        asyncio.get_running_loop().call_later(for_s, self._settled)

    def _settled(self) -> None:
        self._ledger.lending.is_settling = False

    def park(self, session: Session, packet: Packet, verdict: Park, decide: Decide) -> None:
        """Answers later. A process has one question at a time; a second one is refused."""
        if session in self._waiting:
            _answer(session, packet, Refused(verdict.lent))
            return
        self._counters.parked += 1
        self._waiting.add(session)
        card = self._ledger.containers[session.process.key].cards[packet.card].id
        self._chores.start(self._wait(session, packet, card, verdict, decide))

    async def recall(self, budget: Budget, card: int) -> None:
        """Processes with credit give it back, or are silent."""
        lent = [process for process, account in budget.accounts(card) if account.lent and not process.is_waiting]
        lenders = [(process, signals) for process in lent if (signals := self._signals_of(process))]
        if lenders:
            await self._hints.recall(lenders, card, lately_too=True)

    async def _wait(self, session: Session, packet: Packet, card: CardId, verdict: Park, decide: Decide) -> None:
        session.process.is_waiting = True
        try:
            decided = await self._decided(card, packet.card, verdict, decide)
        finally:
            session.process.is_waiting = False
            self._waiting.discard(session)
        _answer(session, packet, decided)

    async def _decided(self, card: CardId, number: int, verdict: Park, decide: Decide) -> Verdict:
        longest_s = LONGEST_S if self._sampler.has_answered else _AWAKE_S
        until = max(time.monotonic() + longest_s, self._settled_s)
        lenders = [(process, signals) for process in verdict.recall if (signals := self._signals_of(process))]
        if lenders:
            await self._hints.recall(lenders, number)
        for pause_s in chain(_AGAIN_S, repeat(_AGAIN_S[-1])):
            now = decide(patience=Patience.PROOF)
            if not isinstance(now, Park):
                return now
            sample = await self._sample(card, until)
            now = decide(patience=Patience.PROOF)
            if not isinstance(now, Park):
                return now
            if time.monotonic() >= until or not self._is_worth_another(card, sample):
                break
            await asyncio.sleep(min(pause_s, max(0.0, until - time.monotonic())))
        return decide(patience=Patience.NONE)

    async def _sample(self, card: CardId, until: float) -> Sample | None:
        try:
            async with asyncio.timeout(max(_SHORTEST_S, until - time.monotonic())):
                return await self._sampler.sample(card, exact_of=self._sampler.unmeasured(card))
        except TimeoutError:
            return None

    def _is_worth_another(self, card: CardId, sample: Sample | None) -> bool:
        """The living show all that they have in one sample; a driver takes a moment with what the dead had."""
        if sample is None:
            return self._settling or not self._sampler.has_answered
        return self._settling or self._sampler.has_dead(card)

    @property
    def _settling(self) -> bool:
        return time.monotonic() < self._settled_s


def _answer(session: Session, packet: Packet, verdict: Verdict) -> None:
    if session.calls is not None:
        session.calls.send(verdict_answer(packet, verdict))
