"""The data of one audit round, and the suspicions that follow from it.

Pure. The ledger is read before and after the cards are sampled: what changed meanwhile accuses no process. A suspicion
names the evidence that must recur before it counts, and the source whose silence neither strengthens nor ends it. A
process without the library is no suspect as long as no card shows it: 32-bit, static and musl programs are not accused.
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
from partage_plugins.api.names import CardId, ContainerKey

MOUNTS: Final = "mounts"
MAPPINGS: Final = "mappings"
Facts = Mapping[ContainerKey, ContainerFacts]


@dataclass(frozen=True)
class Sight:
    pid: int
    birth: Birth
    container: str | None
    """Runtime id of the container with a grant or a claim that it is in, as far as the runtime has listed it."""
    key: ContainerKey | None
    has_library: bool | None
    wrong_places: tuple[str, ...] | None
    """None, here and above: it could not be read."""
    too_long: tuple[str, ...] = ()
    """What it has so much of that it was not read."""


@dataclass(frozen=True)
class Round:
    now_s: float
    before: Facts
    after: Facts
    uses: Mapping[CardId, Sample | None]
    """None: the driver did not respond."""
    listing: Listing | None
    """The runtime's list; None: it did not respond."""
    sights: Mapping[int, Sight] = field(default_factory=dict)
    """By pid; a missing process is gone."""
    first_seen: Mapping[str, Sight] = field(default_factory=dict)
    """The first process of each running container, by the runtime's ids."""
    folders: AbstractSet[ContainerKey] = frozenset()
    """Containers for which something was prepared on the node."""
    gone: AbstractSet[int] = frozenset()
    """Pids in the ledger whose processes no longer exist."""

    def with_looked(
        self, *, sights: Mapping[int, Sight], first_seen: Mapping[str, Sight], gone: AbstractSet[int]
    ) -> Round:
        """The same round, with the results of inspecting processes afterwards."""
        return replace(self, sights=sights, first_seen=first_seen, gone=gone)

    @cached_property
    def rows(self) -> Mapping[int, tuple[ProcessFacts, ...]]:
        found = dict[int, tuple[ProcessFacts, ...]]()
        for row in (*rows_of(self.before), *rows_of(self.after)):
            found[row.pid] = (*found.get(row.pid, ()), row)
        return found

    @cached_property
    def ledger(self) -> Mapping[tuple[int, CardId], int]:
        """What a card may show of a process, by the ledger before or after the sample, whichever is more."""
        before, after = _charged(self.before), _charged(self.after)
        return {place: max(before.get(place, 0), after.get(place, 0)) for place in before.keys() | after.keys()}

    def lent(self, pid: int, card: CardId) -> int:
        """By the ledger after the sample."""
        amounts = [row.cards[card] for row in self.rows.get(pid, ()) if row.has_spoken and card in row.cards]
        return max((each.lent + each.unproved for each in amounts), default=0)

    def hidden(self, pid: int, card: CardId) -> int:
        """Its memory beside what a card shows: the minimum throughout, by the ledger."""
        rows = self.rows.get(pid, ())
        return min((row.cards[card].hidden if card in row.cards else 0 for row in rows), default=0)

    def has_unseen_mounts(self, container: str) -> bool:
        """Whether it exists, and the mounts of its first process could not be read."""
        if self.listing is not None and container not in self.listing:
            return False
        first = self.first_seen.get(container)
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
    """A source of suspicions: the mounts of a container's first process, by the runtime's id."""

    container: str


Place = tuple[BudgetKey, CardId]
Allowed = Mapping[Place, int]
"""Bytes."""


@dataclass(frozen=True)
class Bounds:
    """What budgets may hold of cards, as of the previous rounds."""

    allowed: Allowed = field(default_factory=dict)
    """Exceeds the limit where that was lowered below what was held, and then only by what is still held."""
    refused: Mapping[Place, int] = field(default_factory=dict)
    """For budgets beyond it: their number of refusals when that was first seen."""

    def was_refused(self, container: ContainerFacts, card: CardId) -> bool:
        """It was refused since it was first seen to be beyond."""
        times = container.cards[card].refused
        return times > self.refused.get((container.budget, card), times)


@dataclass(frozen=True)
class Rules:
    """Thresholds of the audit."""

    tolerance_bytes: int = 64 << 20
    """For each process: what loaded code and the driver's own needs may add between two samples."""
    rounds: int = 2
    """Number of rounds that must show a violation."""
    growth_bytes: int = 512 << 20
    """Largest excess over a budget's limit that is attributed to growth without a refusable call."""
    growth_part: int = 4
    """The same as one part in this many of the limit; the smaller applies."""
    refused_rounds: int = 60
    """Rounds for which it may stay there after a refusal: it may first have to release memory."""
    doubtful_rounds: int = 3
    """Rounds for what may resolve by itself: a late listing, a restarted broker."""
    context_in_limit: bool = True
    """Whether limits count contexts and the like."""
    apart_s: float = 0.5
    """Minimum time between rounds that count."""
    unlisted_s: float = 150.0
    """How long a container may be prepared and not created yet: kubelet waits two minutes for a runtime."""


class Suspicion(NamedTuple):
    """A finding that is not confirmed yet."""

    finding: Finding
    evidence: Hashable
    """What must recur unchanged."""
    source: Hashable
    """The source whose silence leaves it unchanged."""
    rounds: int
    """Number of rounds that make it a finding."""


def suspicions(seen: Round, rules: Rules, bounds: Bounds) -> Iterator[Suspicion]:
    """All suspicions of one round, possibly with duplicates."""
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
        return  # died since
    if key is None:
        # Also while the runtime is unavailable: its last list is known, and it starts nothing meanwhile.
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
    """Suspect one container of a budget that holds too much: the one whose process has the most that it was not lent.

    Contexts are much alike, so that process has bypassed the library. Code is loaded without a refusable call: a small
    excess is no suspicion, since nothing more is lent there, unless it stays after a refusal.
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
    """The one whose process has the most that it was not lent."""
    container: str | None
    """Runtime id of that process's container."""


def beyond_limits(seen: Round, rules: Rules, use: CardUse, allowed: Allowed) -> Mapping[BudgetKey, Beyond]:
    """Budgets of which a card shows more than is allowed."""
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
    for sight in (*seen.first_seen.values(), *seen.sights.values()):
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
    """Memory that the broker has marked as late; it decides how long moving may take."""
    for container in seen.after.values():
        for card, limits in container.cards.items():
            if limits.moving is not None and limits.moving.late:
                yield _suspicion(DoesNotMove(container.key, card), None, None, 1)


def _is_left(row: ProcessFacts, seen: Round) -> bool:
    """Alive only in the ledger; or dead, and no card shows it any more."""
    if row.state != "dead":
        return row.pid in seen.gone
    uses = [seen.uses.get(card) for card, amounts in row.cards.items() if amounts.charged]
    return bool(uses) and all(isinstance(use, CardUse) and row.pid not in use.processes for use in uses)


def _suspicion(finding: Finding, birth: Hashable, source: Hashable, rounds: int) -> Suspicion:
    return Suspicion(finding, (finding, birth), source, rounds)
