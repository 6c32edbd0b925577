"""Who has joined on which card: a process is a *member* there until a connection over which it joined is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from partage_isolation.broker.served import Session
from partage_isolation.broker.sockets import Connection
from partage_isolation.leasing.node import Place
from partage_plugins.vocabulary.names import CardId, ContainerKey


@dataclass(slots=True, eq=False)
class Member:
    """One process on one card."""

    session: Session
    number: int
    """Of the card, to its container."""
    key: ContainerKey
    card: CardId
    connections: frozenset[Connection]
    """Over which it joined."""
    leave: Callable[[], None] = field(init=False)


class Crews:
    """Of one node."""

    def __init__(self) -> None:
        self.members: dict[tuple[Session, int], Member] = {}
        """By who it is, and the card's number."""
        self._crews: dict[Place, list[Member]] = {}

    def enter(self, session: Session, number: int, card: CardId) -> Member:
        """One more."""
        connections = frozenset(each for each in (session.calls, session.signals) if each is not None)
        member = Member(session, number, session.process.key, card, connections)
        self.members[session, number] = member
        self._crews.setdefault((member.key, card), []).append(member)
        return member

    def remove(self, member: Member) -> None:
        """It has left."""
        del self.members[member.session, member.number]
        crew = self._crews[member.key, member.card]
        crew.remove(member)
        if not crew:
            del self._crews[member.key, member.card]

    def of(self, key: ContainerKey, card: CardId) -> Sequence[Member]:
        """Who reads that line."""
        return self._crews.get((key, card), ())
