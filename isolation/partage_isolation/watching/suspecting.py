"""What one round makes suspicious. Pure.

A suspicion names what must be the same again before it is believed, and whose silence would neither strengthen nor end
it. A process without the library is none as long as no card shows it: 32-bit, static and musl programs are not accused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from partage_isolation.broker.facts import ProcessFacts
from partage_isolation.watching.findings import (
    BlindCard,
    BytesBeyondLedger,
    BytesBeyondLimit,
    ContainerWithoutRow,
    CoveredMounts,
    Finding,
    ProcessOfNobody,
    ProcessWithoutLibrary,
    ProcessWithoutRow,
    RowWithoutProcess,
)
from partage_isolation.watching.rounds import Round, rows_of
from partage_isolation.watching.use import Blind, CardUse
from partage_plugins.vocabulary.names import CardId, ContainerKey

RUNTIME: Final = "runtime"
Allowed = Mapping[tuple[ContainerKey, CardId], int]
"""Bytes."""


@dataclass(frozen=True)
class Rules:
    """How sure an audit must be."""

    tolerance_bytes: int = 64 << 20
    """For each process: what loaded code and the driver's own needs may add between two samples."""
    rounds: int = 2
    """That must show a violation."""
    doubtful_rounds: int = 3
    """That must show what may come right by itself: a listing that is late, a broker that was restarted."""
    context_in_limit: bool = True
    """Whether limits count contexts and the like."""
    apart_s: float = 0.5
    """Between rounds that count."""
    unlisted_s: float = 150.0
    """So long a container may be prepared and not created yet: kubelet waits two minutes for a runtime."""


class Suspicion(NamedTuple):
    """A finding that is not sure yet."""

    finding: Finding
    evidence: Hashable
    """What must be the same again."""
    source: Hashable
    """Whose silence leaves it as it is."""
    rounds: int
    """That make it a finding."""


def suspicions(seen: Round, rules: Rules, allowed: Allowed) -> Iterator[Suspicion]:
    """All of one round; some perhaps twice."""
    for use in seen.uses.values():
        if isinstance(use, Blind):
            yield _suspicion(BlindCard(use.card), None, use.card, rules.rounds)
        elif use is not None:
            for pid in use.processes:
                yield from _of_process(seen, rules, use, pid)
            yield from _beyond_limits(seen, rules, use, allowed)
    yield from _of_mounts(seen, rules)
    yield from _of_books(seen, rules)


def _of_process(seen: Round, rules: Rules, use: CardUse, pid: int) -> Iterator[Suspicion]:
    sight, key, card, held = seen.sights.get(pid), seen.owner(pid), use.card, use.processes[pid]
    if sight is None:
        return  # it died since
    if key is None:
        # Also while the runtime is away: what it listed last is known, and it starts nothing meanwhile.
        yield _suspicion(ProcessOfNobody(card, pid), sight.birth, card, rules.doubtful_rounds)
    elif key in seen.after:
        rows = [row for row in seen.rows.get(pid, ()) if row.start == sight.birth.start and row.has_spoken]
        if sight.has_library is False:
            yield _suspicion(ProcessWithoutLibrary(key, card, pid), sight.birth, card, rules.rounds)
        elif sight.has_library and not any(row.state != "dead" for row in rows):
            yield _suspicion(ProcessWithoutRow(key, card, pid), sight.birth, card, rules.doubtful_rounds)
        if rows and held is not None and held > seen.ledger.get((pid, card), 0) + rules.tolerance_bytes:
            yield _suspicion(BytesBeyondLedger(key, card, pid), sight.birth, card, rules.rounds)


def _beyond_limits(seen: Round, rules: Rules, use: CardUse, allowed: Allowed) -> Iterator[Suspicion]:
    held = dict[ContainerKey, list[int]]()
    for pid, amount in use.processes.items():
        key = seen.owner(pid)
        if amount is not None and key is not None and key in seen.after:
            held.setdefault(key, []).append(amount)
    for key, amounts in held.items():
        on_top = 0 if rules.context_in_limit else _overhead(seen, key, use.card)
        if sum(amounts) > allowed.get((key, use.card), 0) + on_top + len(amounts) * rules.tolerance_bytes:
            yield _suspicion(BytesBeyondLimit(key, use.card), None, use.card, rules.rounds)


def _overhead(seen: Round, key: ContainerKey, card: CardId) -> int:
    return sum(row.cards[card].overhead for row in seen.after[key].processes if card in row.cards)


def _of_mounts(seen: Round, rules: Rules) -> Iterator[Suspicion]:
    for key, sight in (*seen.firsts.items(), *((one.key, one) for one in seen.sights.values())):
        if key is not None and key in seen.after:
            for place in sight.wrong_places or ():
                yield _suspicion(CoveredMounts(key, place), sight.birth, key, rules.rounds)


def _of_books(seen: Round, rules: Rules) -> Iterator[Suspicion]:
    for key, runs in (seen.running or {}).items():
        if runs and key in seen.folders and key not in seen.before and key not in seen.after:
            yield _suspicion(ContainerWithoutRow(key), None, RUNTIME, rules.doubtful_rounds)
    for row in rows_of(seen.after):
        if _is_left(row, seen):
            yield _suspicion(RowWithoutProcess(row.key, row.pid), row.start, None, 2 * rules.doubtful_rounds)


def _is_left(row: ProcessFacts, seen: Round) -> bool:
    """Alive in the books and nowhere else; or dead, and no card shows it any more."""
    if row.state != "dead":
        return row.pid in seen.gone
    uses = [seen.uses.get(card) for card, amounts in row.cards.items() if amounts.charged]
    return bool(uses) and all(isinstance(use, CardUse) and row.pid not in use.processes for use in uses)


def _suspicion(finding: Finding, birth: Hashable, source: Hashable, rounds: int) -> Suspicion:
    return Suspicion(finding, (finding, birth), source, rounds)
