"""For any requests of processes in any order, simgpud answers, and its accounts match a model's to the byte.

The numbers are a scenario: which process requests which piece, and sometimes an invalid packet, or the end of a
process. At the end everything is released, and nothing may be left.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from simgpu.daemon.orders import CARDS, accounts, asked, compare, order
from simgpu.daemon.users import User, small_node, totals, until
from simgpu.daemon.wire import REQUEST, Ask, Result, request

SEEDS: Final = (
    b"",
    bytes(range(120)),
    b"\0\0\1\1\0\1\0\1\0\2\3\1\1\0\0\3\3\1\0\4\1\7\1\1\0\5\1\2\1\1\0\6\1\1\1\2",
    b"\xff\3\xff\2\0\3\1\1\0\1\0\3\xfe\1",
)
_PROCESSES: Final = 3
_LONGEST: Final = 600
_ENDS, _ODD = 0xFE, 0xFF
_MOST_ENDS: Final = 3
_FOREIGN_ASK: Final = max(Ask) + 1

_stack: Final = ExitStack()
atexit.register(_stack.close)
_node: Final = _stack.enter_context(small_node(Path(_stack.enter_context(tempfile.TemporaryDirectory())), CARDS))
_users: Final = [_stack.enter_context(User(_node.root)) for _ in range(_PROCESSES)]


def target(data: bytes) -> str:
    numbers, model, results, ends = iter(data[:_LONGEST]), accounts(), set[Result](), 0
    _node.control("peaks reset")

    def choose(below: int) -> int:
        return int.from_bytes((next(numbers, 0) for _ in range((below.bit_length() + 7) // 8)), "little") % below

    for first in numbers:
        who = first % _PROCESSES
        if first == _ODD:
            _odd_packet(who, numbers)
        elif first == _ENDS and ends < _MOST_ENDS:
            ends += 1
            _end(who)
            model.ended(who)
        else:
            ask, fields = order(model, choose)
            reply = _users[who].ask(ask, **fields)
            results.add(reply.result)
            model.heard(who, ask, fields, reply)
    compare(model, _node, _users)
    for who in range(_PROCESSES):
        while mine := [number for number, piece in model.pieces.items() if piece.holds[who] and not piece.is_context]:
            asked(model, _users, who, Ask.GIVE, {"id": mine[0]})
        while cards := [card for card in range(CARDS) if who in model.users(card)]:
            asked(model, _users, who, Ask.DETACH, {"card": cards[0]})
    if model.pieces or totals(_node)["pieces"]:
        raise AssertionError("something is left")
    return ",".join(sorted(result.name for result in results))


def _odd_packet(who: int, numbers: Iterator[int]) -> None:
    """A packet of another size, or an invalid request; the rest is random."""
    size = next(numbers, 0) % (2 * REQUEST.size) + 1
    packet = bytes(next(numbers, 0) for _ in range(size))
    if size == REQUEST.size:
        packet = request(_FOREIGN_ASK + packet[0])[:4] + packet[4:]
    _users[who].say(packet.hex())
    if _users[who].answer().result != Result.MISUSED:
        raise AssertionError(f"taken for a request: {packet!r}")


def _end(who: int) -> None:
    _users[who].kill()
    until(lambda: totals(_node)["processes"] == _PROCESSES - 1)
    _users[who] = User(_node.root)
