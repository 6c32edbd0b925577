"""Takes samples of cards: asks NVML, and processes what they use meanwhile, and lets the books know.

A sample may begin at any time, and several of one card may overlap: each judges only what was said before it began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from partage_isolation.broker import sampling_rules as rules
from partage_isolation.broker.containers import Process
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.hints import Hints
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.pieces import ProcessId
from partage_isolation.broker.processes import start_of
from partage_isolation.broker.sockets import Connection
from partage_isolation.broker.states import State
from partage_isolation.broker.wire import Amounts
from partage_isolation.watching.use import Blind, CardUse, Nvml, Sample
from partage_plugins.vocabulary.names import CardId

SignalsOf = Callable[[Process], Connection | None]


class Sampler:
    """Of all cards."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        nvml: Nvml,
        *,
        hints: Hints,
        counters: Counters,
        signals_of: SignalsOf,
        learned: Callable[[CardId, int], None],
    ) -> None:
        """`signals_of` a process, where it has some; `learned` hears what a context took."""
        self._ledger, self._nvml, self._hints, self._counters = ledger, nvml, hints, counters
        self._signals_of, self._learned = signals_of, learned
        self.has_answered = False
        """NVML did, once since the broker was started; to wake up takes it seconds."""

    async def sample(self, card: CardId, *, exact_of: Iterable[Process] | None = ()) -> Sample | None:
        """One sample, applied; None where NVML does not answer.

        `exact_of` are asked what they use, so that their overhead is known; None: everybody on the card.
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
            rules.apply_blind(self._ledger, beginning)
        else:
            after = await self._hints.report([each for each in asked if each[0] in before]) if before else {}
            shown = rules.Shown(use.processes, self._starts(card, use), dict(_exact(before, after)))
            for size in rules.apply(self._ledger, beginning, shown):
                self._learned(card, size)
        self._counters.samples["taken"] += 1
        self.has_answered = True
        return use

    def unmeasured(self, card: CardId) -> tuple[Process, ...]:
        """Those whose contexts were made, and not measured yet."""
        return tuple(process for _, _, process, account in self._ledger.on_card(card) if account.is_made)

    def has_dead(self, card: CardId) -> bool:
        """Whether a dead process is still charged for that card."""
        return any(process.state is State.DEAD for _, _, process, _ in self._ledger.on_card(card))

    def _asked(self, card: CardId, only: set[Process] | None) -> Iterator[tuple[Process, Connection, int]]:
        for _, number, process, _ in self._ledger.on_card(card):
            if (only is None or process in only) and process.state is State.LIVE and not process.is_silent:
                signals = self._signals_of(process)
                if signals is not None:
                    yield process, signals, number

    def _starts(self, card: CardId, use: CardUse) -> dict[int, int]:
        """Of those pids that may be of others by now: a living process keeps its pid."""
        found: dict[int, int] = {}
        for _, _, process, _ in self._ledger.on_card(card):
            if process.state in (State.DEAD, State.FOUND) and process.pid in use.processes:
                start = start_of(process.pid)
                if start is not None:
                    found[process.pid] = start
        return found


def _exact(before: dict[Process, Amounts], after: dict[Process, Amounts]) -> Iterator[tuple[ProcessId, int]]:
    for process, amounts in before.items():
        used = rules.exact_used(amounts, after.get(process))
        if used is not None:
            yield process.id, used
