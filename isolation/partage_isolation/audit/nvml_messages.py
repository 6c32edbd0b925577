"""What the child that asks NVML and its parent say to each other, one message a packet. Pure.

The child carries the driver's library, so what it sends is outside data to the parent. And it stays small: no more is
imported here than it has anyway, which is why messages are packed by hand.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

MAX_BYTES: Final = 192 * 1024
"""Of a message; the kernel carries packets of up to 208 KiB."""
_LONGEST_TEXT: Final = 1000
LONGEST_GROUP: Final = 700
"""Bytes of a folder's path: it fits into a text with the rest."""
MOST_PROCESSES: Final = 10_000
"""On one card: so many fit into a message."""
_HEAD: Final = struct.Struct("<BxHIQ")
"""What it is, bytes of text, processes, and a number: when, or how much."""
_PROCESS: Final = struct.Struct("<IxxxxQ")
_READY, _ASK, _USED, _REFUSED, _ENDED, _NO_LIBRARY, _BLIND, _LIMIT, _LIMITED = range(1, 10)
_UNKNOWN: Final = 2**64 - 1


class NotUnderstood(ValueError):
    """A packet that is no message."""


class AskUse(NamedTuple):
    """What processes hold of a card or MIG instance."""

    card: str


class AskLimit(NamedTuple):
    """The driver itself is to hold the processes of a control group to so much of a card."""

    card: str
    group: str
    """The group's folder."""
    bytes: int


class Ready(NamedTuple):
    """The driver is open: from now on answers come quickly."""

    has_limits: bool = False
    """It has the function by which it holds control groups to limits."""


class Used(NamedTuple):
    card: str
    taken_ns: int
    processes: dict[int, int | None]
    """Bytes by pid; None: the driver does not say."""


class Unseen(NamedTuple):
    """The answer where the driver says of no process on that card what it holds."""

    card: str
    taken_ns: int


class Limited(NamedTuple):
    """What the driver said to `AskLimit`."""

    card: str
    group: str
    number: int
    """NVML's; 0: it is in force."""
    why: str = ""


class CardRefused(NamedTuple):
    """The driver has no answer for this card; others may."""

    card: str
    why: str


class Ended(NamedTuple):
    """This process has no driver to ask, or not the same one any more: its last words."""

    why: str
    has_library: bool
    """False: there is none, so most likely no card either."""


Question = AskUse | AskLimit
Told = Ready | Used | Unseen | Limited | CardRefused | Ended


def asked(question: Question) -> bytes:
    if isinstance(question, AskLimit):
        return _packed(_LIMIT, f"{question.card}\n{question.group}", number=question.bytes)
    return _packed(_ASK, question.card)


def question(packet: bytes) -> Question:
    what, text, number, _ = _read(packet)
    if what == _LIMIT:
        card, _, group = text.partition("\n")
        return AskLimit(card, group, number)
    if what != _ASK:
        raise NotUnderstood(f"a message of kind {what} is no question")
    return AskUse(text)


def encoded(message: Told) -> bytes:
    if isinstance(message, Used):
        return _packed(_USED, message.card, message.processes, message.taken_ns)
    if isinstance(message, Unseen):
        return _packed(_BLIND, message.card, number=message.taken_ns)
    if isinstance(message, Limited):
        return _packed(_LIMITED, f"{message.card}\n{message.group}\n{message.why}", number=message.number)
    if isinstance(message, CardRefused):
        return _packed(_REFUSED, f"{message.card}\n{message.why}")
    if isinstance(message, Ended):
        return _packed(_ENDED if message.has_library else _NO_LIBRARY, message.why)
    return _packed(_READY, "", number=message.has_limits)


def told(packet: bytes) -> Told:
    what, text, number, processes = _read(packet)
    if what == _READY:
        return Ready(has_limits=number != 0)
    if what == _USED:
        return Used(text, number, processes)
    if what == _BLIND:
        return Unseen(text, number)
    if what == _LIMITED:
        card, _, rest = text.partition("\n")
        group, _, why = rest.partition("\n")
        return Limited(card, group, number, why)
    if what == _REFUSED:
        card, _, why = text.partition("\n")
        return CardRefused(card, why)
    if what in (_ENDED, _NO_LIBRARY):
        return Ended(text, has_library=what == _ENDED)
    raise NotUnderstood(f"a message of kind {what}, which the child has not")


def _packed(what: int, text: str, processes: dict[int, int | None] | None = None, number: int = 0) -> bytes:
    words, rows = text.encode()[:_LONGEST_TEXT], (processes or {}).items()
    head = _HEAD.pack(what, len(words), len(rows), number)
    return b"".join((head, words, *(_PROCESS.pack(pid, _UNKNOWN if held is None else held) for pid, held in rows)))


def _read(packet: bytes) -> tuple[int, str, int, dict[int, int | None]]:
    try:
        what, length, count, number = _HEAD.unpack_from(packet)
    except struct.error:
        raise NotUnderstood(f"a packet of {len(packet)} bytes is no message") from None
    words, rows = packet[_HEAD.size : _HEAD.size + length], packet[_HEAD.size + length :]
    if len(words) != length or len(rows) != count * _PROCESS.size:
        raise NotUnderstood("a message of another length than it says")
    processes = {pid: None if held == _UNKNOWN else held for pid, held in _PROCESS.iter_unpack(rows)}
    if len(processes) != count:
        raise NotUnderstood("a process that is named twice")
    return what, words.decode(errors="replace"), number, processes
