"""How a container is at this moment, as `facts` for the audit, for people's tools and for metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.facts import AmountFacts, CardLimits, ContainerFacts, ProcessFacts, StateName
from partage_isolation.broker.served import Served
from partage_isolation.broker.states import State
from partage_plugins.vocabulary.names import CardId

_STATES: Final[Mapping[State, StateName]] = {
    State.LIVE: "live",
    State.DETACHED: "detached",
    State.UNCONFIRMED: "unconfirmed",
    State.FOUND: "unconfirmed",
    State.DEAD: "dead",
    State.GONE: "dead",
}


def picture(served: Served) -> ContainerFacts:
    """Of one container."""
    spec, container = served.spec, served.container
    return ContainerFacts(
        key=spec.key,
        pod=spec.pod,
        container=spec.container,
        gen=spec.gen,
        cards=dict(_limits(container)),
        processes=tuple(_process(served, process) for process in container.processes.values()),
    )


def _limits(container: Container) -> Iterator[tuple[CardId, CardLimits]]:
    for number, book in enumerate(container.cards):
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
