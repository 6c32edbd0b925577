"""Snapshots of the ledger: as facts for the audit and metrics, and as the response to `tell`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from partage_isolation.audit.facts import (
    AmountFacts,
    CardLimits,
    ContainerFacts,
    MigrationFacts,
    ProcessFacts,
    StateName,
)
from partage_isolation.ledger.account import Account
from partage_isolation.ledger.budget import Process, State
from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.domains import Place
from partage_isolation.timeslices.line import LineState, Shares, Windows
from partage_isolation.wire.connection import Served
from partage_isolation.wire.messages import (
    BrokerReport,
    CardHeld,
    CardReport,
    ContainerReport,
    LineStateName,
    MigrationReport,
    Parts,
    ProcessCard,
    ProcessReport,
    TimeReport,
)
from partage_isolation.wire.migration import Migration
from partage_isolation.wire.packets import Loss
from partage_isolation.wire.timeslices import Terms
from partage_plugins.api.names import CardId, ContainerKey

_STATES: Final[Mapping[State, StateName]] = {
    State.LIVE: "live",
    State.DETACHED: "detached",
    State.UNCONFIRMED: "unconfirmed",
    State.FOUND: "unconfirmed",
    State.DEAD: "dead",
    State.GONE: "dead",
}


def picture(served: Served, times: Mapping[Place, Shares], moving: Migration) -> ContainerFacts:
    """Facts of one container; `times` has each container's wanted and received time per card."""
    spec, budget = served.spec, served.budget
    return ContainerFacts(
        key=spec.key,
        pod=spec.pod,
        container=spec.container,
        gen=spec.gen,
        cards={
            card.id: CardLimits(
                card,
                budget.charged(number),
                budget.refused[number],
                times.get((budget.key, card.id)),
                moving.facts(budget.key, card.id),
            )
            for number, card in enumerate(budget.cards)
        },
        processes=tuple(_process(served, process) for process in budget.of(spec.key)),
        budget_name=spec.budget,
        is_claim=spec.is_claim,
        is_kept=spec.is_claim and not spec.is_released,
        engine_containers=tuple(each.id for each in spec.engine_containers),
    )


def _process(served: Served, process: Process) -> ProcessFacts:
    session = served.sessions.get(process.id)
    cards = served.budget.cards
    return ProcessFacts(
        pid=process.pid,
        start=process.start,
        key=process.key,
        connected=session is not None and session.calls is not None,
        cards={cards[number].id: _amounts(process, account) for number, account in process.accounts.items()},
        state=_STATES[process.state],
        has_spoken=process.state is not State.FOUND,
    )


def _amounts(process: Process, account: Account) -> AmountFacts:
    return AmountFacts(
        used=min(account.used, account.lent),
        lent=account.lent,
        unproved=account.unproved,
        overhead=account.fixed,
        state=_STATES[process.state],
        hidden=min(account.hidden, account.lent),
    )


_LINE_STATES: Final[Mapping[LineState, LineStateName]] = {
    LineState.CLOSED: "closed",
    LineState.TIMESLICE: "lease",
    LineState.SOLE: "sole",
    LineState.FREE: "free",
}


DriverHolds = Callable[[ContainerKey, CardId], int | None]
"""The driver's own limit of a card for a container."""


def told(  # noqa: PLR0913  all that is told
    containers: Iterable[ContainerFacts],
    *,
    version: str,
    library: str,
    cards: tuple[CardReport, ...],
    findings: tuple[str, ...],
    terms: Terms,
    driver_holds: DriverHolds = lambda _key, _card: None,
) -> BrokerReport:
    return BrokerReport(
        broker=version,
        library=library,
        enforces=terms.enforced,
        policy=terms.policy,
        compute_on_broker_loss="closed" if terms.loss is Loss.CLOSED else "free-run",
        cards=cards,
        containers=tuple(_containers(tuple(containers), driver_holds)),
        findings=findings,
    )


def _containers(containers: Sequence[ContainerFacts], driver_holds: DriverHolds) -> Iterator[ContainerReport]:
    users = dict[BudgetKey, list[ContainerFacts]]()
    for each in containers:
        users.setdefault(each.budget, []).append(each)
    for facts in containers:
        yield ContainerReport(
            key=facts.key,
            pod=facts.pod,
            container=facts.container,
            gen=facts.gen,
            cards=tuple(_cards(facts, users[facts.budget], driver_holds)),
            processes=tuple(map(_process_told, facts.processes)),
            budget=facts.budget_name,
            is_claim=facts.is_claim,
            engine_containers=facts.engine_containers,
        )


def _cards(facts: ContainerFacts, users: Sequence[ContainerFacts], driver_holds: DriverHolds) -> Iterator[CardHeld]:
    """Figures of a budget cover all its containers, `users`; the driver reports none for several together."""
    for card, limits in facts.cards.items():
        spec = limits.spec
        yield CardHeld(
            card=card,
            granted_bytes=spec.memory,
            limit_bytes=spec.memory_in_force,
            charged_bytes=limits.charged,
            used_bytes=sum(each.used(card) for each in users),
            overhead_bytes=sum(each.overhead(card) for each in users),
            refused=limits.refused,
            driver_limit_bytes=driver_holds(facts.key, card) if len(users) == 1 and not facts.is_claim else None,
            share_milli=spec.share_in_force,
            limit_milli=spec.limit_in_force,
            granted_share_milli=spec.share,
            granted_limit_milli=spec.limit,
            time=None if limits.time is None else _time(limits.time),
            moving=None if limits.moving is None else _moving(limits.moving),
        )


def _moving(facts: MigrationFacts) -> MigrationReport:
    return MigrationReport(
        resident_bytes=facts.resident,
        moved_bytes=facts.moved,
        times=facts.times,
        seconds=facts.spent_ns / 1e9,
        is_out=facts.is_out,
        is_suspended=facts.is_suspended,
    )


def _time(shares: Shares) -> TimeReport:
    return TimeReport(
        wanted=_parts(shares.wanted),
        got=_parts(shares.got),
        timeslices=shares.timeslices,
        revocations=shares.revocations,
        drains=shares.drains.count,
        drain_seconds=shares.drains.sum_ns / 1e9,
        overlaps=shares.overlaps,
        state=_LINE_STATES[shares.state],
        is_waiting=shares.is_waiting,
        processes=shares.members,
    )


def _parts(windows: Windows) -> Parts:
    return Parts(s1=round(windows.s1, 4), s10=round(windows.s10, 4), s60=round(windows.s60, 4))


def _process_told(facts: ProcessFacts) -> ProcessReport:
    cards = tuple(
        ProcessCard(
            card=card,
            used_bytes=amounts.used,
            lent_bytes=amounts.lent,
            unproved_bytes=amounts.unproved,
            overhead_bytes=amounts.overhead,
            state=amounts.state,
        )
        for card, amounts in facts.cards.items()
    )
    return ProcessReport(pid=facts.pid, connected=facts.connected, cards=cards)
