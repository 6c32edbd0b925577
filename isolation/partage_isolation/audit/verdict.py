"""Turns repeated suspicions into findings, and decides which containers are gone. Pure.

A race must not accuse a process. A suspicion becomes a finding when successive rounds show the same of the very same
process: after a pid was reused, or an exec, it starts from zero. A round without data neither strengthens a suspicion
nor ends it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from partage_isolation.audit.facts import CardUse, ContainerFacts
from partage_isolation.audit.findings import Finding, OfContainer
from partage_isolation.audit.suspicions import (
    RUNTIME,
    Allowed,
    Bounds,
    MountsOf,
    Place,
    Round,
    Rules,
    Suspicion,
    beyond_limits,
    suspicions,
)
from partage_isolation.names import BudgetKey
from partage_plugins.api.names import ContainerKey


class ViolationCount(NamedTuple):
    """The number of times that a suspicion was seen, and when last."""

    suspicion: Suspicion
    times: int
    last_s: float


class Absence(NamedTuple):
    """A container in the ledger that the runtime does not list."""

    since_s: float
    was_listed: bool
    listings: int


@dataclass(frozen=True)
class Memory:
    """State that is kept from one audit to the next."""

    violations: Mapping[Hashable, ViolationCount] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    absent: Mapping[ContainerKey, Absence] = field(default_factory=dict)
    listed: AbstractSet[ContainerKey] = frozenset()


@dataclass(frozen=True)
class Verdict:
    findings: tuple[Finding, ...]
    forget: tuple[ContainerKey, ...]


def audited(memory: Memory, seen: Round, rules: Rules) -> tuple[Memory, Verdict]:
    allowed = _allowed(memory, seen)
    bounds = Bounds(allowed, _refused(memory, seen, rules, allowed))
    violations = _violations(memory, seen, rules, bounds)
    absent = _absent(memory, seen)
    now_listed = frozenset[ContainerKey]() if seen.listing is None else seen.listing.keys_in_use
    listed = (memory.listed | now_listed) & seen.after.keys()
    sure = (one.suspicion.finding for one in violations.values() if one.times >= one.suspicion.rounds)
    findings = tuple(dict.fromkeys(sure))
    used = {each.budget for key, each in seen.after.items() if key not in absent}
    forget = tuple(
        key for key, absence in absent.items() if _is_gone(absence, seen.after[key], used, seen.now_s, rules)
    )
    return Memory(violations, bounds, absent, listed), Verdict(findings, forget)


def _violations(memory: Memory, seen: Round, rules: Rules, bounds: Bounds) -> dict[Hashable, ViolationCount]:
    silent_cards = {card for card, use in seen.uses.items() if use is None}
    silent_runtime = {RUNTIME} if seen.listing is None else set[str]()
    violations = {
        evidence: one
        for evidence, one in memory.violations.items()
        if one.suspicion.source in silent_cards | silent_runtime or _is_unseen(one.suspicion, seen)
    }
    for suspicion in suspicions(seen, rules, bounds):
        _, times, last_s = memory.violations.get(suspicion.evidence, (None, 0, float("-inf")))
        counts = seen.now_s - last_s >= rules.apart_s
        violations[suspicion.evidence] = ViolationCount(suspicion, times + counts, seen.now_s if counts else last_s)
    return violations


def _is_unseen(suspicion: Suspicion, seen: Round) -> bool:
    """The suspicion is about mounts that can't be read now."""
    match suspicion:
        case Suspicion(OfContainer(key=key), source=MountsOf(container)):
            return key in seen.after and seen.has_unseen_mounts(container)
        case _:
            return False


def _allowed(memory: Memory, seen: Round) -> dict[Place, int]:
    """The limit; where it was lowered, the amount charged then, as far as it is still charged.

    For budgets that are new to this audit, the highest grant ever counts as the previous limit.
    """
    limits = {(each.budget, card): one for each in seen.after.values() for card, one in each.cards.items()}
    before = memory.bounds.allowed
    return {
        place: max(one.spec.memory_in_force, min(before.get(place, one.spec.most_memory), one.charged))
        for place, one in limits.items()
    }


def _refused(memory: Memory, seen: Round, rules: Rules, allowed: Allowed) -> dict[Place, int]:
    """Refusal counts of budgets beyond their limits; unchanged for a card without a response."""
    known = memory.bounds.refused.items()
    found = {place: times for place, times in known if place in allowed and seen.uses.get(place[1]) is None}
    for use in (each for each in seen.uses.values() if isinstance(each, CardUse)):
        for budget, beyond in beyond_limits(seen, rules, use, allowed).items():
            place, limits = (budget, use.card), seen.after[beyond.key].cards[use.card]
            found[place] = memory.bounds.refused.get(place, limits.refused)
    return found


def _absent(memory: Memory, seen: Round) -> dict[ContainerKey, Absence]:
    if seen.listing is None:
        return {key: absence for key, absence in memory.absent.items() if key in seen.after}
    return {
        key: _once_more(memory.absent.get(key, Absence(seen.now_s, key in memory.listed, 0)))
        for key in seen.after
        if key not in seen.listing.keys_in_use
    }


def _once_more(absence: Absence) -> Absence:
    return absence._replace(listings=absence.listings + 1)


def _is_gone(
    absence: Absence, container: ContainerFacts, used: AbstractSet[BudgetKey], now_s: float, rules: Rules
) -> bool:
    """A container is not gone while a process is alive, or its dead ones are charged to a budget that others use.

    A claim is gone only once it was released, and then immediately: no container is about to have it.
    """
    if container.is_kept:
        return False
    if absence.listings < rules.rounds or any(row.connected or row.state != "dead" for row in container.processes):
        return False
    if container.budget in used and container.processes:
        return False
    return absence.was_listed or container.is_claim or now_s - absence.since_s >= rules.unlisted_s
