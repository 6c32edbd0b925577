"""Random requests of processes that use cards, with replies checked against the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from partage_simgpu.node import SimulatedNode
from partage_simgpu.status import statuses_of
from simgpu.daemon.accounts import Accounts
from simgpu.daemon.users import User, totals
from simgpu.daemon.wire import BLOCK, MIB, Ask, Fields

Choose = Callable[[int], int]
"""A number below this one, from any source of decisions."""

CARDS: Final = 2
CAPACITY: Final = 900 * MIB
CONTEXT_BYTES: Final = 64 * MIB
_ASKS: Final = (
    *(Ask.ATTACH, Ask.DETACH, Ask.USED),
    *(Ask.TAKE,) * 4,
    *(Ask.GIVE,) * 3,
    *(Ask.HOLD, Ask.SHARE, Ask.SHARE, Ask.OPEN, Ask.OPEN),
)
_ODD_CARD: Final = 9
_SIZES: Final = (0, 1, 4096, MIB, 10 * MIB, 300 * MIB, CAPACITY, 2**64 - 1)


def accounts() -> Accounts:
    return Accounts(CARDS, CAPACITY, CONTEXT_BYTES)


def order(model: Accounts, choose: Choose) -> tuple[Ask, Fields]:
    """A request: mostly sensible, sometimes with numbers that are another's, old or never assigned."""
    ask = _ASKS[choose(len(_ASKS))]
    card = _ODD_CARD if choose(40) == 0 else choose(CARDS)
    match ask:
        case Ask.TAKE:
            return ask, {"card": card, "kind": BLOCK + choose(9 if choose(9) == 0 else 7), "size": _amount(choose)}
        case Ask.GIVE | Ask.HOLD | Ask.SHARE:
            return ask, {"id": _number(model, choose)}
        case Ask.OPEN:
            return ask, {"token": _token(model, choose)}
        case _:
            return ask, {"card": card}


def asked(model: Accounts, users: list[User], who: int, ask: Ask, fields: Fields) -> None:
    model.heard(who, ask, fields, users[who].ask(ask, **fields))


def compare(model: Accounts, node: SimulatedNode, users: list[User]) -> None:
    """All accounts are equal, to the byte."""
    cards = statuses_of(node.control("status"))
    for index, card in cards.items():
        assert (card.used_bytes, card.peak_bytes) == (model.used(index), model.peaks.get(index, 0))
        charged = {users[who].pid: model.charged(who, index) for who in model.users(index)}
        assert {process.pid: process.bytes for process in card.processes} == charged
    assert totals(node)["pieces"] == len(model.pieces)


def _amount(choose: Choose) -> int:
    return _SIZES[choose(len(_SIZES))] if choose(3) == 0 else 1 + choose(64 * MIB)


def _number(model: Accounts, choose: Choose) -> int:
    numbers = list(model.pieces)
    match choose(12):
        case 0:
            return choose(2**32) << 32 | choose(64)
        case 1 if model.ids:
            return sorted(model.ids)[choose(len(model.ids))]
        case _:
            return numbers[choose(len(numbers))] if numbers else 0


def _token(model: Accounts, choose: Choose) -> bytes:
    tokens = [piece.token for piece in model.pieces.values() if piece.token]
    if not tokens or choose(12) == 0:
        return _number(model, choose).to_bytes(8, "little") + bytes(8)
    return tokens[choose(len(tokens))]
