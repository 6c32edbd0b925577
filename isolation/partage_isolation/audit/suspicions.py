"""What one round of the audit saw, and what that makes suspicious.

Pure. The ledger is read before and after the cards are asked: what changed meanwhile accuses no process. A suspicion
names what must be the same again before it is believed, and whose silence neither strengthens nor ends it. A process
without the library is no suspect as long as no card shows it: 32-bit, static and musl programs are not accused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from partage_isolation.audit.facts import Blind, CardUse, ContainerFacts, ProcessFacts, Sample
from partage_isolation.audit.findings import (
    BlindCard,
    BytesBeyondLedger,
    BytesBeyondLimit,
    ContainerWithoutRow,
    CoveredMounts,
    DoesNotMove,
    Finding,
    ProcessOfNobody,
    ProcessWithoutLibrary,
    ProcessWithoutRow,
    RowWithoutProcess,
    TooMuchToRead,
)
from partage_isolation.audit.listing import Listing
from partage_isolation.audit.proofs import Birth
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId, ContainerKey

MOUNTS: Final = "mounts"
MAPPINGS: Final = "mappings"
Facts = Mapping[ContainerKey, ContainerFacts]


@dataclass(frozen=True)
class Sight:
    pid: int
    birth: Birth
    container: str | None
    """The runtime's id of the container with a grant or a claim that it is in, as far as the runtime has named it."""
    key: ContainerKey | None
    has_library: bool | None
    wrong_places: tuple[str, ...] | None
    """None, as above: it could not be seen."""
    too_long: tuple[str, ...] = ()
    """What it has so much of that it was not read."""


@dataclass(frozen=True)
class Round:
    now_s: float
    before: Facts
    after: Facts
    uses: Mapping[CardId, Sample | None]
    """None: the driver did not answer."""
    listing: Listing | None
    """What the runtime has; None: it did not answer."""
    sights: Mapping[int, Sight] = field(default_factory=dict)
    """By pid; a process that is not here is gone."""
    firsts: Mapping[str, Sight] = field(default_factory=dict)
    """The first process of each running container, by the runtime's ids."""
    folders: AbstractSet[ContainerKey] = frozenset()
    """Containers for which something was prepared on the node."""
    gone: AbstractSet[int] = frozenset()
    """Pids in the books that are no such processes any more."""

    def with_looked(self, *, sights: Mapping[int, Sight], firsts: Mapping[str, Sight], gone: AbstractSet[int]) -> Round:
        """The same, with what processes showed afterwards."""
        return replace(self, sights=sights, firsts=firsts, gone=gone)

    @cached_property
    def rows(self) -> Mapping[int, tuple[ProcessFacts, ...]]:
        found = dict[int, tuple[ProcessFacts, ...]]()
        for row in (*rows_of(self.before), *rows_of(self.after)):
            found[row.pid] = (*found.get(row.pid, ()), row)
        return found

    @cached_property
    def ledger(self) -> Mapping[tuple[int, CardId], int]:
        """What a card may show of a process, by the books before or after it was asked, whichever is more."""
        before, after = _charged(self.before), _charged(self.after)
        return {place: max(before.get(place, 0), after.get(place, 0)) for place in before.keys() | after.keys()}

    def lent(self, pid: int, card: CardId) -> int:
        """By the books after the cards were asked."""
        amounts = [row.cards[card] for row in self.rows.get(pid, ()) if row.has_spoken and card in row.cards]
        return max((each.lent + each.unproved for each in amounts), default=0)

    def hidden(self, pid: int, card: CardId) -> int:
        """What it has beside what a card shows: all the while, by the books."""
        rows = self.rows.get(pid, ())
        return min((row.cards[card].hidden if card in row.cards else 0 for row in rows), default=0)

    def has_unseen_mounts(self, container: str) -> bool:
        """Whether it is there, and nothing can be said of the mounts of its first process."""
        if self.listing is not None and container not in self.listing:
            return False
        first = self.firsts.get(container)
        return first is None or first.wrong_places is None

    def container_of(self, pid: int) -> str | None:
        sight = self.sights.get(pid)
        return None if sight is None else sight.container

    def owner(self, pid: int) -> ContainerKey | None:
        sight = self.sights.get(pid)
        if sight is not None and sight.key is not None:
            return sight.key
        return next((row.key for row in self.rows.get(pid, ()) if row.state != "dead"), None)


def rows_of(facts: Facts) -> Iterator[ProcessFacts]:
    return (row for container in facts.values() for row in container.processes)


def _charged(facts: Facts) -> Mapping[tuple[int, CardId], int]:
    found = dict[tuple[int, CardId], int]()
    for row in rows_of(facts):
        for card, amounts in row.cards.items():
            found[row.pid, card] = found.get((row.pid, card), 0) + amounts.charged - amounts.hidden
    return found


RUNTIME: Final = "runtime"


class MountsOf(NamedTuple):
    """A source: what the first process of a container sees, by the runtime's id."""

    container: str


Place = tuple[BudgetKey, CardId]
Allowed = Mapping[Place, int]
"""Bytes."""


@dataclass(frozen=True)
class Bounds:
    """What budgets may hold of cards, as the rounds before leave it."""

    allowed: Allowed = field(default_factory=dict)
    """More than the limit where that was lowered below what was held, and then only what is held still."""
    refused: Mapping[Place, int] = field(default_factory=dict)
    """Of those that are beyond it: how often they had been refused when that was first seen."""

    def was_refused(self, container: ContainerFacts, card: CardId) -> bool:
        """Since it was seen to be beyond."""
        times = container.cards[card].refused
        return times > self.refused.get((container.budget, card), times)


@dataclass(frozen=True)
class Rules:
    """How sure an audit must be."""

    tolerance_bytes: int = 64 << 20
    """For each process: what loaded code and the driver's own needs may add between two samples."""
    rounds: int = 2
    """That must show a violation."""
    growth_bytes: int = 512 << 20
    """So much beyond the limit of a budget is taken for what grew without a call that could be refused;"""
    growth_part: int = 4
    """and no more than one part in so many of the limit."""
    refused_rounds: int = 60
    """That it may stay there once something was refused: it may have to let go of what it has first."""
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


def suspicions(seen: Round, rules: Rules, bounds: Bounds) -> Iterator[Suspicion]:
    """All of one round; some perhaps twice."""
    for use in seen.uses.values():
        if isinstance(use, Blind):
            yield _suspicion(BlindCard(use.card), None, use.card, rules.rounds)
        elif use is not None:
            for pid in use.processes:
                yield from _of_process(seen, rules, use, pid)
            yield from _beyond_limits(seen, rules, use, bounds)
    yield from _of_mounts(seen, rules)
    yield from _of_books(seen, rules)
    yield from _of_moves(seen)


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
            finding = ProcessWithoutLibrary(key, card, pid, container=sight.container)
            yield _suspicion(finding, sight.birth, card, rules.rounds)
        elif sight.has_library and not any(row.state != "dead" for row in rows):
            silent = ProcessWithoutRow(key, card, pid, container=sight.container)
            yield _suspicion(silent, sight.birth, card, rules.doubtful_rounds)
        if rows and held is not None and held > seen.ledger.get((pid, card), 0) + rules.tolerance_bytes:
            beyond = BytesBeyondLedger(key, card, pid, container=sight.container)
            yield _suspicion(beyond, sight.birth, card, rules.rounds)


def _beyond_limits(seen: Round, rules: Rules, use: CardUse, bounds: Bounds) -> Iterator[Suspicion]:
    """Of a budget that holds too much one container is suspected: the one whose process has most that it was not lent.

    Contexts are much alike, so that is the process which went past the library. Code comes without a call that could
    be refused: a little beyond is no suspicion, as nothing more is lent there, unless it stays after a refusal.
    """
    for budget, beyond in beyond_limits(seen, rules, use, bounds.allowed).items():
        finding = BytesBeyondLimit(beyond.key, use.card, container=beyond.container)
        if beyond.amount > min(rules.growth_bytes, bounds.allowed.get((budget, use.card), 0) // rules.growth_part):
            yield _suspicion(finding, None, use.card, rules.rounds)
        if bounds.was_refused(seen.after[beyond.key], use.card):
            yield _suspicion(finding, budget, use.card, rules.refused_rounds)


class Beyond(NamedTuple):
    amount: int
    key: ContainerKey
    """Whose process has most that it was not lent."""
    container: str | None
    """In which that process is."""


def beyond_limits(seen: Round, rules: Rules, use: CardUse, allowed: Allowed) -> Mapping[BudgetKey, Beyond]:
    """The budgets of which a card shows more than is allowed."""
    held = dict[BudgetKey, list[_Held]]()
    for pid, amount in use.processes.items():
        key = seen.owner(pid)
        if amount is not None and key is not None and key in seen.after:
            has = amount + seen.hidden(pid, use.card)
            not_lent = has - seen.lent(pid, use.card)
            held.setdefault(seen.after[key].budget, []).append(_Held(not_lent, has, key, pid))
    found = dict[BudgetKey, Beyond]()
    for budget, processes in held.items():
        keys = {each.key for each in processes}
        on_top = 0 if rules.context_in_limit else sum(seen.after[key].overhead(use.card) for key in keys)
        most = allowed.get((budget, use.card), 0) + on_top + len(processes) * rules.tolerance_bytes
        amount = sum(each.amount for each in processes) - most
        if amount > 0:
            most_not_lent = max(processes)
            found[budget] = Beyond(amount, most_not_lent.key, seen.container_of(most_not_lent.pid))
    return found


class _Held(NamedTuple):
    not_lent: int
    amount: int
    key: ContainerKey
    pid: int


def _of_mounts(seen: Round, rules: Rules) -> Iterator[Suspicion]:
    for sight in (*seen.firsts.values(), *seen.sights.values()):
        if sight.container is not None and sight.key is not None and sight.key in seen.after:
            for place in sight.wrong_places or ():
                finding = CoveredMounts(sight.key, place, container=sight.container)
                yield _suspicion(finding, sight.birth, MountsOf(sight.container), rules.rounds)
            for what in sight.too_long:
                too_much = TooMuchToRead(sight.key, what, container=sight.container)
                yield _suspicion(too_much, sight.birth, None, rules.rounds)


def _of_books(seen: Round, rules: Rules) -> Iterator[Suspicion]:
    for one in () if seen.listing is None else seen.listing.values():
        if one.running and one.key in seen.folders and one.key not in seen.before and one.key not in seen.after:
            yield _suspicion(ContainerWithoutRow(one.key), None, RUNTIME, rules.doubtful_rounds)
    for row in rows_of(seen.after):
        if _is_left(row, seen):
            yield _suspicion(RowWithoutProcess(row.key, row.pid), row.start, None, 2 * rules.doubtful_rounds)


def _of_moves(seen: Round) -> Iterator[Suspicion]:
    """How long it may take is the broker's to say."""
    for container in seen.after.values():
        for card, limits in container.cards.items():
            if limits.moving is not None and limits.moving.late:
                yield _suspicion(DoesNotMove(container.key, card), None, None, 1)


def _is_left(row: ProcessFacts, seen: Round) -> bool:
    """Alive in the books and nowhere else; or dead, and no card shows it any more."""
    if row.state != "dead":
        return row.pid in seen.gone
    uses = [seen.uses.get(card) for card, amounts in row.cards.items() if amounts.charged]
    return bool(uses) and all(isinstance(use, CardUse) and row.pid not in use.processes for use in uses)


def _suspicion(finding: Finding, birth: Hashable, source: Hashable, rounds: int) -> Suspicion:
    return Suspicion(finding, (finding, birth), source, rounds)
