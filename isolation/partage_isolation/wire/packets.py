"""The packets between the library and the broker; `preload/core/wire.h` documents and defines the same protocol.

Pure. A packet is 64 bytes. Input decodes to a `Packet` or None; nothing here raises on what a client sent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.pieces import Shared
from partage_isolation.migration.tenant import Placed

PATH: Final = "/run/partage/broker"
VERSION: Final = 1
BYTES: Final = 64
ANSWER: Final = 0x8000
NO_CARD: Final = 0xFFFF
TOKEN_BYTES: Final = 16
NO_TOKEN: Final = bytes(TOKEN_BYTES)
PROCESSES_AT_ONCE: Final = 3


class What(IntEnum):
    HELLO = 1
    CARD = 2
    LEND = 3
    RETURN = 4
    CONTEXT = 5
    AMOUNTS = 6
    VIEW = 7
    PROCESSES_OF = 8
    EXPORT = 9
    LEAVE = 10
    OPEN = 11
    CLOSE = 12
    RECALL = 32
    REPORT = 33
    JOIN = 64
    WANT = 65
    DRAINED = 66
    IDLE = 67
    PING = 68
    PONG = 69
    LINE = 70
    PLACE = 96
    PLACED = 97


class Result(IntEnum):
    OK = 0
    NO = 1
    FULL = 2
    UNKNOWN = 3
    WRONG = 4
    OUT = 5


class Flag(IntFlag):
    SIGNALS = 1
    CONTEXT_MADE = 2
    CONTEXT_FAILED = 4
    ANYBODY = 8
    AGAIN = 16
    GREW = 32
    SURE = 64
    PROMPT = 128
    MOVES = 256


class Loss(IntEnum):
    """Policy for launches while the broker is away."""

    CLOSED = 0
    FREE = 1


UNANSWERED: Final = frozenset((What.WANT, What.DRAINED, What.IDLE, What.PLACED))
"""Packets on the signals socket: they get no response, even if invalid."""
_AGAIN: Final = int(Flag.AGAIN)
"""A plain number: it is tested in every request."""
_GREW: Final = int(Flag.GREW)
_HEAD: Final = struct.Struct("<4H2I")
_PACKET: Final = struct.Struct("<4H2I6Q")
_AMOUNTS: Final = struct.Struct("<2Q3I4xQ")
_LENT: Final = struct.Struct("<4H2I2Q2I2I16x")
_SHARED: Final = struct.Struct("<4Q")
_HELLO: Final = struct.Struct("<16s2I")
_CARD: Final = struct.Struct("<16sQ4I")
_VIEW: Final = struct.Struct("<3Q")
_PROCESS: Final = struct.Struct("<2IQ")
_LEASE: Final = struct.Struct("<Q4IQ")
_PLACE: Final = struct.Struct("<3Q2I")
_LINE_HINT: Final = struct.Struct("<4H2IQI36x")
_LINE: Final = int(What.LINE)
"""A plain number: it is sent for each change of a line."""
_BODY: Final = _HEAD.size


class Packet(NamedTuple):
    version: int
    what: int
    card: int
    result: int
    number: int
    flags: int
    data: bytes
    """The complete packet."""

    @property
    def token(self) -> bytes:
        return self.data[_BODY : _BODY + TOKEN_BYTES]

    @property
    def is_again(self) -> bool:
        """The same call of a program was requested before, and refused."""
        return bool(self.flags & _AGAIN)

    @property
    def has_grown(self) -> bool:
        """The process may hold more than before that is not accounted: take a sample of the card first."""
        return bool(self.flags & _GREW)

    @property
    def amounts(self) -> Amounts:
        return Amounts._make(_AMOUNTS.unpack_from(self.data, _BODY))

    @property
    def shared(self) -> Shared:
        return Shared._make(_SHARED.unpack_from(self.data, _BODY))

    @property
    def timeslice(self) -> TimeSlice:
        return TimeSlice._make(_LEASE.unpack_from(self.data, _BODY))

    @property
    def placed(self) -> Placed:
        return Placed._make(_PLACE.unpack_from(self.data, _BODY))

    @property
    def first_process(self) -> int:
        """For PROCESSES_OF: index of the first process to return."""
        return int.from_bytes(self.data[_BODY : _BODY + 8], "little")


class TimeSlice(NamedTuple):
    """A packet's fields about the time slice of one card."""

    at: int = 0
    """Nanoseconds of CLOCK_MONOTONIC."""
    epoch: int = 0
    is_blocked: int = 0
    idle_us: int = 0
    loss: int = 0
    loss_after: int = 0
    """Nanoseconds."""


def read(data: bytes) -> Packet | None:
    """Decode a packet; None if its length is wrong."""
    return Packet._make((*_HEAD.unpack_from(data), data)) if len(data) == BYTES else None


def answer(to: Packet, result: int, body: bytes = b"", *, flags: int = 0) -> bytes:
    head = _HEAD.pack(VERSION, to.what | ANSWER, to.card, result, to.number, flags)
    return (head + body).ljust(BYTES, b"\0")


def lent_answer(to: Packet, result: int, lent: int, returns: int = 0, flags: int = 0) -> bytes:
    """Response to a memory request: the amount lent now, after that many returns."""
    return _LENT.pack(VERSION, to.what | ANSWER, to.card, result, to.number, flags, 0, lent, 0, 0, returns, 0)


def hint(what: What, card: int, number: int) -> bytes:
    """A notification from the broker."""
    return _PACKET.pack(VERSION, what, card, 0, number, 0, 0, 0, 0, 0, 0, 0)


def place_hint(card: int, resident: int, order: int) -> bytes:
    """Notification that this much movable memory may be on the card."""
    return _HEAD.pack(VERSION, What.PLACE, card, 0, 0, 0) + _PLACE.pack(resident, 0, 0, order, 0).ljust(
        BYTES - _BODY, b"\0"
    )


def place_body(placed: Placed) -> bytes:
    return _PLACE.pack(*placed)


def line_hint(card: int, epoch: int) -> bytes:
    """Notification that a card's line has changed."""
    return _LINE_HINT.pack(VERSION, _LINE, card, 0, 0, 0, 0, epoch)


def question(what: int, *, card: int = NO_CARD, number: int = 0, flags: int = 0, body: bytes = b"") -> bytes:
    return (_HEAD.pack(VERSION, what, card, 0, number, flags) + body).ljust(BYTES, b"\0")


def hello_body(token: bytes, cards: int = 0) -> bytes:
    return _HELLO.pack(token, cards, 0)


def amounts_body(amounts: Amounts) -> bytes:
    return _AMOUNTS.pack(*amounts)


def shared_body(shared: Shared) -> bytes:
    return _SHARED.pack(*shared)


def card_body(uuid: bytes, memory: int, *, share: int, limit: int, is_mig: bool) -> bytes:
    return _CARD.pack(uuid, memory, share, limit, is_mig, 0)


def view_body(limit: int, charged: int, fixed: int) -> bytes:
    return _VIEW.pack(limit, charged, fixed)


def processes_body(processes: Sequence[tuple[int, int]]) -> bytes:
    """Body of the response to PROCESSES_OF: pids and bytes, at most three."""
    return b"".join(_PROCESS.pack(pid, 0, amount) for pid, amount in processes[:PROCESSES_AT_ONCE])


def lease_body(timeslice: TimeSlice) -> bytes:
    return _LEASE.pack(*timeslice)


class CardAnswer(NamedTuple):
    uuid: bytes
    memory: int
    share: int
    limit: int
    is_mig: int


class View(NamedTuple):
    limit: int
    charged: int
    fixed: int


def read_hello(packet: Packet) -> tuple[bytes, int]:
    token, cards, _ = _HELLO.unpack_from(packet.data, _BODY)
    return token, cards


def read_card(packet: Packet) -> CardAnswer:
    return CardAnswer._make(_CARD.unpack_from(packet.data, _BODY)[:5])


def read_view(packet: Packet) -> View:
    return View._make(_VIEW.unpack_from(packet.data, _BODY))


def read_processes(packet: Packet) -> tuple[tuple[int, int], ...]:
    found = (_PROCESS.unpack_from(packet.data, _BODY + number * _PROCESS.size) for number in range(PROCESSES_AT_ONCE))
    return tuple((pid, amount) for pid, _, amount in found if pid)
