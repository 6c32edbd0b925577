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
MOST_PROCESSES: Final = 10_000
"""On one card: so many fit into a message."""
_HEAD: Final = struct.Struct("<BxHIQ")
"""What it is, bytes of text, processes, when."""
_PROCESS: Final = struct.Struct("<IxxxxQ")
_READY, _ASK, _USED, _REFUSED, _ENDED, _NO_LIBRARY, _BLIND = range(1, 8)
_UNKNOWN: Final = 2**64 - 1


class NotUnderstood(ValueError):
    """A packet that is no message."""


class AskUse(NamedTuple):
    """What processes hold of a card or MIG instance."""

    card: str


class Ready(NamedTuple):
    """The driver is open: from now on answers come quickly."""


class Used(NamedTuple):
    card: str
    taken_ns: int
    processes: dict[int, int | None]
    """Bytes by pid; None: the driver does not say."""


class Unseen(NamedTuple):
    """The answer where the driver says of no process on that card what it holds."""

    card: str
    taken_ns: int


class CardRefused(NamedTuple):
    """The driver has no answer for this card; others may."""

    card: str
    why: str


class Ended(NamedTuple):
    """This process has no driver to ask, or not the same one any more: its last words."""

    why: str
    has_library: bool
    """False: there is none, so most likely no card either."""


Told = Ready | Used | Unseen | CardRefused | Ended


def asked(question: AskUse) -> bytes:
    return _packed(_ASK, question.card)


def question(packet: bytes) -> AskUse:
    what, text, _, _ = _read(packet)
    if what != _ASK:
        raise NotUnderstood(f"a message of kind {what} is no question")
    return AskUse(text)


def encoded(message: Told) -> bytes:
    if isinstance(message, Used):
        return _packed(_USED, message.card, message.processes, message.taken_ns)
    if isinstance(message, Unseen):
        return _packed(_BLIND, message.card, taken_ns=message.taken_ns)
    if isinstance(message, CardRefused):
        return _packed(_REFUSED, f"{message.card}\n{message.why}")
    if isinstance(message, Ended):
        return _packed(_ENDED if message.has_library else _NO_LIBRARY, message.why)
    return _packed(_READY, "")


def told(packet: bytes) -> Told:
    what, text, taken_ns, processes = _read(packet)
    if what == _READY:
        return Ready()
    if what == _USED:
        return Used(text, taken_ns, processes)
    if what == _BLIND:
        return Unseen(text, taken_ns)
    if what == _REFUSED:
        card, _, why = text.partition("\n")
        return CardRefused(card, why)
    if what in (_ENDED, _NO_LIBRARY):
        return Ended(text, has_library=what == _ENDED)
    raise NotUnderstood(f"a message of kind {what}, which the child has not")


def _packed(what: int, text: str, processes: dict[int, int | None] | None = None, taken_ns: int = 0) -> bytes:
    words, rows = text.encode()[:_LONGEST_TEXT], (processes or {}).items()
    head = _HEAD.pack(what, len(words), len(rows), taken_ns)
    return b"".join((head, words, *(_PROCESS.pack(pid, _UNKNOWN if held is None else held) for pid, held in rows)))


def _read(packet: bytes) -> tuple[int, str, int, dict[int, int | None]]:
    try:
        what, length, count, taken_ns = _HEAD.unpack_from(packet)
    except struct.error:
        raise NotUnderstood(f"a packet of {len(packet)} bytes is no message") from None
    words, rows = packet[_HEAD.size : _HEAD.size + length], packet[_HEAD.size + length :]
    if len(words) != length or len(rows) != count * _PROCESS.size:
        raise NotUnderstood("a message of another length than it says")
    processes = {pid: None if held == _UNKNOWN else held for pid, held in _PROCESS.iter_unpack(rows)}
    if len(processes) != count:
        raise NotUnderstood("a process that is named twice")
    return what, words.decode(errors="replace"), taken_ns, processes
