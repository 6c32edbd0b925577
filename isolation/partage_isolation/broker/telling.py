"""What people's tools are told: the books in the words of the control protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from partage_isolation.broker.facts import ContainerFacts, ProcessFacts
from partage_isolation.control.questions import CardHeld, CardTold, ContainerTold, ProcessCard, ProcessTold, Told


def told(
    containers: Iterable[ContainerFacts],
    *,
    version: str,
    library: str,
    cards: tuple[CardTold, ...],
    findings: tuple[str, ...],
) -> Told:
    """All of it."""
    return Told(
        broker=version,
        library=library,
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
        )


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
