"""Questions about memory that several processes hold, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from partage_isolation.broker import wire
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.served import Session
from partage_isolation.broker.wire import Flag, Packet, Result, What


def _export(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    anybodys = bool(packet.flags & Flag.ANYBODY)
    is_noted = ledger.sharing.exported(session.process, packet.card, packet.shared, anybodys=anybodys)
    return wire.answer(packet, Result.OK if is_noted else Result.FULL)


def _leave(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    lent = ledger.sharing.left(session.process, packet.card, packet.shared)
    return wire.lent_answer(packet, Result.OK, lent)


def _open(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    size = ledger.sharing.opened(session.process, packet.card, packet.shared)
    if size is None:
        return wire.answer(packet, Result.NO)
    return wire.answer(packet, Result.OK, wire.shared_body(packet.shared._replace(size=size)))


def _close(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    ledger.sharing.closed(session.process, packet.shared)
    return wire.answer(packet, Result.OK)


SHARING: Final[Mapping[int, Callable[[Ledger, Session, Packet], bytes]]] = {
    What.EXPORT: _export,
    What.LEAVE: _leave,
    What.OPEN: _open,
    What.CLOSE: _close,
}
"""What answers each of them."""
