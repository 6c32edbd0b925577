"""What people's tools are told: the books in the words of the control protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from partage_isolation.broker.facts import ContainerFacts, ProcessFacts
from partage_isolation.broker.terms import Terms
from partage_isolation.broker.wire import Loss
from partage_isolation.control.questions import (
    CardHeld,
    CardTold,
    ContainerTold,
    LeaseState,
    Parts,
    ProcessCard,
    ProcessTold,
    TimeTold,
    Told,
)
from partage_isolation.leasing.acts import Shares, Windows
from partage_isolation.leasing.words import LineState

_STATES: Final[Mapping[LineState, LeaseState]] = {
    LineState.CLOSED: "closed",
    LineState.LEASE: "lease",
    LineState.SOLE: "sole",
    LineState.FREE: "free",
}


def told(  # noqa: PLR0913  all that is told
    containers: Iterable[ContainerFacts],
    *,
    version: str,
    library: str,
    cards: tuple[CardTold, ...],
    findings: tuple[str, ...],
    terms: Terms,
) -> Told:
    """All of it."""
    return Told(
        broker=version,
        library=library,
        enforces=terms.enforced,
        policy=terms.policy,
        compute_on_broker_loss="closed" if terms.loss is Loss.CLOSED else "free-run",
        cards=cards,
        containers=tuple(map(_container, containers)),
        findings=findings,
    )


def _container(facts: ContainerFacts) -> ContainerTold:
    return ContainerTold(
        key=facts.key,
        pod=facts.pod,
        container=facts.container,
        gen=facts.gen,
        cards=tuple(_cards(facts)),
        processes=tuple(map(_process, facts.processes)),
    )


def _cards(facts: ContainerFacts) -> Iterable[CardHeld]:
    for card, limits in facts.cards.items():
        mine = [process.cards[card] for process in facts.processes if card in process.cards]
        yield CardHeld(
            card=card,
            granted_bytes=limits.granted,
            limit_bytes=limits.memory,
            charged_bytes=limits.charged,
            used_bytes=sum(amounts.used for amounts in mine),
            overhead_bytes=sum(amounts.overhead for amounts in mine),
            refused=limits.refused,
            share_milli=limits.share,
            limit_milli=limits.limit,
            granted_share_milli=limits.granted_share,
            granted_limit_milli=limits.granted_limit,
            time=None if limits.time is None else _time(limits.time),
        )


def _time(shares: Shares) -> TimeTold:
    return TimeTold(
        wanted=_parts(shares.wanted),
        got=_parts(shares.got),
        leases=shares.leases,
        revocations=shares.revocations,
        drains=shares.drains.count,
        drain_seconds=shares.drains.sum_ns / 1e9,
        overlaps=shares.overlaps,
        state=_STATES[shares.state],
        is_waiting=shares.is_waiting,
        processes=shares.members,
    )


def _parts(windows: Windows) -> Parts:
    return Parts(s1=round(windows.s1, 4), s10=round(windows.s10, 4), s60=round(windows.s60, 4))


def _process(facts: ProcessFacts) -> ProcessTold:
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
    return ProcessTold(pid=facts.pid, connected=facts.connected, cards=cards)
