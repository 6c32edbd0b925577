"""Answers as bytes: a verdict, a card, how it looks to the container, which processes are on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from partage_isolation.ledger.budget import Budget, CardBook, State
from partage_isolation.ledger.loans import Lent, NoRoom, Out, Refused, Verdict, believed
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Packet, Result
from partage_isolation.wire.served import Served, Session
from partage_plugins.vocabulary.names import CardId


def uuid_of(card: CardId) -> bytes:
    """The bytes of `GPU-…` or `MIG-…`; of another id, some that no card has."""
    try:
        return UUID(card.partition("-")[2]).bytes
    except ValueError:
        return hashlib.sha256(card.encode()).digest()[:16]


def is_mig(card: CardId) -> bool:
    return card.startswith("MIG-")


_OK: Final = int(Result.OK)
"""As a plain number: most answers have it."""


def verdict_answer(packet: Packet, verdict: Verdict, returns: int) -> bytes:
    """`returns`: how often the process gave back by now."""
    if isinstance(verdict, Lent):
        return wire.lent_answer(packet, _OK, verdict.lent, returns)
    if isinstance(verdict, NoRoom):
        return wire.answer(packet, Result.FULL)
    if isinstance(verdict, Out):
        return wire.answer(packet, Result.OUT)
    is_sure = isinstance(verdict, Refused) and verdict.is_sure
    return wire.lent_answer(packet, Result.NO, verdict.lent, returns, Flag.SURE if is_sure else 0)


def card_answer(packet: Packet, book: CardBook) -> bytes:
    body = wire.card_body(
        uuid_of(book.id), book.limit, share=book.share, limit=book.limit_milli, is_mig=is_mig(book.id)
    )
    return wire.answer(packet, Result.OK, body)


def view_answer(packet: Packet, budget: Budget) -> bytes:
    limit, charged = budget.cards[packet.card].limit, believed(budget, packet.card)
    return wire.answer(packet, Result.OK, wire.view_body(limit, charged, budget.fixed(packet.card)))


def processes_answer(packet: Packet, served: Served, asker: Session) -> bytes:
    """Three of those that are on a card, as the asker's pid namespace has them."""
    found = sorted(_seen_from(asker, served, packet.card))
    first = min(packet.first_process, len(found))
    return wire.answer(packet, Result.OK, wire.processes_body(found[first:]), flags=len(found))


def _seen_from(asker: Session, served: Served, card: int) -> Iterator[tuple[int, int]]:
    for process, account in served.budget.accounts(card):
        session = served.sessions.get(process.id)
        if process.state is State.DEAD or session is None or not account.total:
            continue
        pid = pid_for(asker, session)
        if pid is not None:
            yield pid, min(account.used, account.lent) + account.unproved + account.fixed


def pid_for(asker: Session, other: Session) -> int | None:
    """The pid of one process as another sees it; None where its namespace does not have it."""
    level = len(asker.pids) - 1
    if level < 0 or len(other.pids) <= level:
        return None
    if len(other.pids) == len(asker.pids) and other.namespace != asker.namespace:
        return None
    return other.pids[level]
