"""How a container is at this moment, as `facts` for the audit, for people's tools and for metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.facts import AmountFacts, CardLimits, ContainerFacts, ProcessFacts, StateName
from partage_isolation.broker.served import Served
from partage_isolation.broker.specs import Spec
from partage_isolation.broker.states import State
from partage_isolation.leasing.acts import Shares
from partage_isolation.leasing.node import Place
from partage_plugins.vocabulary.names import CardId

_STATES: Final[Mapping[State, StateName]] = {
    State.LIVE: "live",
    State.DETACHED: "detached",
    State.UNCONFIRMED: "unconfirmed",
    State.FOUND: "unconfirmed",
    State.DEAD: "dead",
    State.GONE: "dead",
}


def picture(served: Served, times: Mapping[Place, Shares]) -> ContainerFacts:
    """Of one container; `times`: what each wanted and got of each card's time."""
    spec, container = served.spec, served.container
    return ContainerFacts(
        key=spec.key,
        pod=spec.pod,
        container=spec.container,
        gen=spec.gen,
        cards=dict(_limits(spec, container, times)),
        processes=tuple(_process(served, process) for process in container.processes.values()),
    )


def _limits(spec: Spec, container: Container, times: Mapping[Place, Shares]) -> Iterator[tuple[CardId, CardLimits]]:
    for number, (card, book) in enumerate(zip(spec.cards, container.cards, strict=True)):
        yield (
            book.id,
            CardLimits(
                memory=book.limit,
                share=book.share,
                limit=book.limit_milli,
                granted=book.granted,
                most=book.most,
                charged=container.charged(number),
                shared=container.shared(number),
                refused=book.refused,
                granted_share=card.share,
                granted_limit=card.limit,
                time=times.get((spec.key, card.id)),
            ),
        )


def _process(served: Served, process: Process) -> ProcessFacts:
    session = served.sessions.get(process.id)
    cards = served.container.cards
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
    )
