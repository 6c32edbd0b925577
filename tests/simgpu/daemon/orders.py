"""Random requests of processes that use cards, with replies checked against the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from partage_simgpu.node import SimulatedNode
from partage_simgpu.status import statuses_of
from simgpu.daemon.users import User, totals
from simgpu.daemon.wire import BLOCK, CONTEXT, EXECUTABLE, MIB, Ask, Fields, Reply, Result


@dataclass
class Piece:
    card: int
    size: int
    owner: int | None
    """The process that allocated it and is charged for it, while it holds it."""
    is_context: bool
    holds: Counter[int] = field(default_factory=Counter[int])
    token: bytes = b""
    """Empty until it is shared."""


@dataclass
class Accounts:
    """The accounts of a node whose cards are all alike."""

    cards: int
    capacity: int
    context: int
    pieces: dict[int, Piece] = field(default_factory=dict)
    peaks: dict[int, int] = field(default_factory=dict)
    contexts: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    """Contexts by process and card."""
    ids: set[int] = field(default_factory=set)
    """All that ever existed."""

    def used(self, card: int) -> int:
        return sum(piece.size for piece in self.pieces.values() if piece.card == card)

    def charged(self, who: int, card: int) -> int:
        return sum(piece.size for piece in self.pieces.values() if (piece.card, piece.owner) == (card, who))

    def users(self, card: int) -> set[int]:
        return {who for (who, of), count in self.contexts.items() if of == card and count}

    def heard(self, who: int, ask: Ask, fields: Fields, reply: Reply) -> None:
        """Fail unless the reply is correct, and record its effects."""
        card, number = fields.get("card", 0), fields.get("id", 0)
        match ask:
            case Ask.ATTACH | Ask.DETACH | Ask.TAKE | Ask.USED if card >= self.cards:
                expected = Result.UNKNOWN
            case Ask.ATTACH:
                expected = self._attach(who, card, reply)
            case Ask.DETACH:
                expected = self._detach(who, card)
            case Ask.TAKE:
                expected = self._take(who, card, fields.get("kind", 0), fields.get("size", 0), reply)
            case Ask.GIVE | Ask.HOLD | Ask.SHARE if number in self.pieces and self.pieces[number].is_context:
                expected = Result.MISUSED
            case Ask.GIVE | Ask.HOLD | Ask.SHARE if not self._holds(who, number):
                expected = Result.UNKNOWN
            case Ask.OPEN:
                expected = self._open(who, fields.get("token", b""), reply)
            case _:
                expected = self._of_piece(who, ask, number, card, reply)
        assert reply.result == expected, (who, ask, fields, reply, expected)
        self._note_peaks()

    def ended(self, who: int) -> None:
        """The process has died, or executed another program."""
        for number in [number for number, piece in self.pieces.items() if piece.holds[who]]:
            self.pieces[number].holds[who] = 1
            self._give(who, number)
        for card in range(self.cards):
            self.contexts.pop((who, card), None)

    def forget_peaks(self) -> None:
        self.peaks.clear()
        self._note_peaks()

    def _note_peaks(self) -> None:
        for card in range(self.cards):
            self.peaks[card] = max(self.peaks.get(card, 0), self.used(card))

    def _holds(self, who: int, number: int) -> bool:
        return number in self.pieces and self.pieces[number].holds[who] > 0

    def _new(self, who: int, card: int, amount: int, number: int, *, is_context: bool = False) -> Result:
        if self.used(card) + amount > self.capacity:
            return Result.NO_MEMORY
        assert number not in self.ids, "a number came a second time"
        self.ids.add(number)
        self.pieces[number] = Piece(card, amount, who, is_context, Counter({who: 1}))
        return Result.OK

    def _attach(self, who: int, card: int, reply: Reply) -> Result:
        if not self.contexts[who, card]:
            result = self._new(who, card, self.context, reply.id, is_context=True)
            if result != Result.OK:
                return result
        assert self.pieces[reply.id].is_context
        self.contexts[who, card] += 1
        return Result.OK

    def _detach(self, who: int, card: int) -> Result:
        if not self.contexts[who, card]:
            return Result.MISUSED
        self.contexts[who, card] -= 1
        if not self.contexts[who, card]:
            (mine,) = [
                number
                for number, piece in self.pieces.items()
                if piece.is_context and (piece.owner, piece.card) == (who, card)
            ]
            self._give(who, mine)
        return Result.OK

    def _take(self, who: int, card: int, kind: int, amount: int, reply: Reply) -> Result:
        if not amount or kind == CONTEXT or kind > EXECUTABLE:
            return Result.MISUSED
        return self._new(who, card, amount, reply.id)

    def _give(self, who: int, number: int) -> None:
        piece = self.pieces[number]
        piece.holds[who] -= 1
        if piece.holds[who]:
            return
        if piece.owner == who:
            piece.owner = None
        if not +piece.holds:
            del self.pieces[number]

    def _open(self, who: int, token: bytes, reply: Reply) -> Result:
        found = [number for number, piece in self.pieces.items() if token and piece.token == token]
        if not found:
            return Result.UNKNOWN
        piece = self.pieces[found[0]]
        assert (reply.id, reply.size, reply.count) == (found[0], piece.size, piece.card)
        piece.holds[who] += 1
        return Result.OK

    def _of_piece(self, who: int, ask: Ask, number: int, card: int, reply: Reply) -> Result:
        match ask:
            case Ask.GIVE:
                self._give(who, number)
            case Ask.HOLD:
                self.pieces[number].holds[who] += 1
            case Ask.SHARE:
                known = self.pieces[number].token
                assert known in {b"", reply.token}, "a piece has one token"
                self.pieces[number].token = reply.token
            case Ask.USED:
                assert reply.size == self.charged(who, card)
            case _:
                raise NotImplementedError(ask)
        return Result.OK


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
