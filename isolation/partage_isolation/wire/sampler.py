"""Samples cards: queries NVML, asks processes for their usage meanwhile, and updates the ledger.

A sample may begin at any time, and samples of one card may overlap: each judges only what was reported before it began.
A process that a card shows and that never connected is charged to its container, if that is known.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator

from partage_base.peers import start_of
from partage_isolation.audit.facts import Blind, CardUse, Nvml, Sample
from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.pieces import ProcessId
from partage_isolation.metrics import Counters
from partage_isolation.wire.background_work import in_slices
from partage_isolation.wire.connection import Connection
from partage_isolation.wire.notifications import Notifications
from partage_isolation.wire.packets import TOKEN_BYTES
from partage_isolation.wire.served import Registry
from partage_plugins.api.names import CardId, ContainerKey


class Sampler:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        nvml: Nvml,
        *,
        hints: Notifications,
        counters: Counters,
        registry: Registry,
        learned: Callable[[CardId, int], None],
    ) -> None:
        """`learned` is called with the size of each measured context."""
        self._ledger, self._nvml, self._hints, self._counters = ledger, nvml, hints, counters
        self._registry, self._learned = registry, learned
        self.has_answered = False
        """NVML has responded since the broker's start; initializing may take it seconds."""

    async def use(self, card: CardId) -> Sample | None:
        """`Nvml` for the audit, which compares with the ledger after the sample: all processes on the card report."""
        return await self.sample(card, exact_of=None)

    async def sample(self, card: CardId, *, exact_of: Iterable[Process] | None = ()) -> Sample | None:
        """Take and apply one sample; None where NVML does not respond.

        Processes in `exact_of` report their usage, so that their overhead is known; None means all processes on the
        card.
        """
        asked = list(self._asked(card, None if exact_of is None else set(exact_of)))
        before = await self._hints.report(asked) if asked else {}
        beginning = rules.begin(self._ledger, card, time.monotonic_ns())
        use = await self._nvml.use(card)
        self._counters.sample_seconds += (time.monotonic_ns() - beginning.began_ns) / 1e9
        if use is None or use.taken_ns < beginning.began_ns:
            self._counters.samples["failed"] += 1
            return None
        if isinstance(use, Blind):
            async for _ in in_slices(rules.applying_blind(self._ledger, beginning)):
                pass
        else:
            after = await self._hints.report([each for each in asked if each[0] in before]) if before else {}
            shown = rules.Shown(use.processes, self._starts(card, use), dict(_exact(before, after)))
            async for sizes in in_slices(rules.applying(self._ledger, beginning, shown)):
                for size in sizes:
                    self._learned(card, size)
        self._counters.samples["taken"] += 1
        self.has_answered = True
        return use

    def unmeasured(self, card: CardId) -> tuple[Process, ...]:
        """Processes whose contexts were made but not measured yet."""
        return tuple(process for _, _, process, account in self._ledger.on_card(card) if account.is_made)

    def has_dead(self, card: CardId) -> bool:
        return any(process.state is State.DEAD for _, _, process, _ in self._ledger.on_card(card))

    def _asked(self, card: CardId, only: set[Process] | None) -> Iterator[tuple[Process, Connection, int]]:
        for _, number, process, _ in self._ledger.on_card(card):
            if (only is None or process in only) and process.state is State.LIVE and not process.is_silent:
                signals = self._registry.signals_of(process)
                if signals is not None:
                    yield process, signals, number

    def _starts(self, card: CardId, use: CardUse) -> dict[int, int]:
        """Start times of pids that may have been reused; a live process keeps its pid."""
        found: dict[int, int] = {}
        for _, _, process, _ in self._ledger.on_card(card):
            if process.state in (State.DEAD, State.FOUND) and process.pid in use.processes:
                start = start_of(process.pid)
                if start is not None:
                    found[process.pid] = start
        return found

    # ---- Processes that never connected ------------------------------------------------------------------------------

    def seen(self, card: CardId, use: Sample | None) -> None:
        """Charge the usage of processes that the ledger does not have to their containers."""
        known = frozenset(process.pid for _, _, process, _ in self._ledger.on_card(card))
        for pid, amount in use.processes.items() if isinstance(use, CardUse) else ():
            if amount is not None and pid not in known and (start := start_of(pid)) is not None:
                self.charge((pid, start), card, amount)

    def charge(self, who: ProcessId, card: CardId, amount: int) -> bool:
        """False where the container is unknown, or has no such card."""
        key = self._container_of(who)
        budget = self._ledger.containers.get(key) if key is not None else None
        number = budget.card_number(card) if budget is not None else None
        if key is None or number is None:
            return False
        token = os.urandom(TOKEN_BYTES)
        return self._ledger.lives.found(key, who, token, card=number, amount=amount) is not None

    def _container_of(self, who: ProcessId) -> ContainerKey | None:
        known = (budget.processes.get(who) for budget in self._ledger.budgets.values())
        process = next((each for each in known if each is not None), None)
        return self._registry.container_of(who[0]) if process is None else process.key


def _exact(before: dict[Process, Amounts], after: dict[Process, Amounts]) -> Iterator[tuple[ProcessId, int]]:
    for process, amounts in before.items():
        used = rules.exact_used(amounts, after.get(process))
        if used is not None:
            yield process.id, used
