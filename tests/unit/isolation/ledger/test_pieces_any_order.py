"""The card's memory is charged to the byte: each piece once, for as long as any process has it.

Processes make, open, free and close pieces and die in any order, and the broker is killed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.pieces import Shared
from partage_isolation.ledger.quota_accounting import Patience
from support.extent import examples
from unit.isolation.ledger.keeping import CARD, KEY, MIB, Kept, ledger_of, restarted

LIMIT = 1 << 40
_any = st.integers(0, 1 << 16)


@dataclass(eq=False)
class Made:
    """The real state of a piece."""

    maker: int
    number: int
    size: int
    names: list[int]
    is_anybodys: bool = False
    given: int = 0
    is_made: bool = True
    openers: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    witnesses: set[int] = field(default_factory=set[int])
    """All processes that lived when its maker last gave some of it back, if any process may have it."""
    left: int = 0


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kept = Kept()
        self.ledger: Ledger = ledger_of(LIMIT, self.kept)
        self.pids: list[int] = []
        self.pieces: list[Made] = []
        self.last = 0

    def fresh(self) -> int:
        self.last += 1
        return self.last

    def process(self, pid: int) -> Process:
        return self.ledger.containers[KEY].processes[pid, pid]

    def made_by(self, pid: int) -> int:
        return sum(piece.size - piece.given for piece in self.pieces if piece.maker == pid and piece.is_made)

    @precondition(lambda self: len(self.pids) < 5)
    @rule()
    def begin(self) -> None:
        pid = 1000 + self.fresh()
        assert self.ledger.lives.begin(KEY, (pid, pid), pid.to_bytes(16, "big"))
        self.pids.append(pid)

    @precondition(lambda self: self.pids)
    @rule(index=_any, mib=st.integers(1, 64), is_anybodys=st.booleans())
    def make(self, index: int, mib: int, is_anybodys: bool) -> None:  # noqa: FBT001
        pid = self.pids[index % len(self.pids)]
        piece = Made(pid, self.fresh(), mib * MIB, [self.fresh()], is_anybodys)
        held = self.made_by(pid)
        self.ledger.accounting.lend(self.process(pid), 0, Amounts(held, held + piece.size), patience=Patience.NONE)
        self.pieces.append(piece)
        self.settle()
        self.export(piece, piece.names[0])

    @precondition(lambda self: self.pieces)
    @rule(index=_any)
    def another_name(self, index: int) -> None:
        piece = self.pieces[index % len(self.pieces)]
        if piece.is_made:
            piece.names.append(self.fresh())
            self.export(piece, piece.names[-1])

    def export(self, piece: Made, name: int) -> None:
        said = Shared(name, piece.number, piece.size)
        assert self.ledger.sharing.exported(self.process(piece.maker), 0, said, anybodys=piece.is_anybodys)

    @precondition(lambda self: self.pids and self.pieces)
    @rule(who=_any, index=_any, which=_any)
    def open(self, who: int, index: int, which: int) -> None:
        """The driver opens it as long as a process has it; a name that the broker no longer knows is skipped."""
        piece = self.pieces[index % len(self.pieces)]
        pid, name = self.pids[who % len(self.pids)], piece.names[which % len(piece.names)]
        known = piece.is_made or piece.witnesses or name in {each for _, each in piece.openers}
        if pid != piece.maker and known:
            assert self.ledger.sharing.opened(self.process(pid), 0, Shared(name)) == piece.size
            piece.openers.add((pid, name))

    @precondition(lambda self: any(piece.openers for piece in self.pieces))
    @rule(index=_any, twice=st.booleans())
    def close(self, index: int, twice: bool) -> None:  # noqa: FBT001
        piece, opener = sorted(
            ((piece, opener) for piece in self.pieces for opener in piece.openers), key=lambda pair: pair[1]
        )[index % sum(len(piece.openers) for piece in self.pieces)]
        piece.openers.discard(opener)
        self.released()
        for _ in range(1 + twice):
            self.ledger.sharing.closed(self.process(opener[0]), Shared(opener[1]))

    @precondition(lambda self: self.pieces)
    @rule(index=_any, twice=st.booleans(), part=st.integers(1, 2))
    def free(self, index: int, twice: bool, part: int) -> None:  # noqa: FBT001
        """All that is left of the piece, or half of it."""
        piece = self.pieces[index % len(self.pieces)]
        if piece.is_made:
            more = -(-(piece.size - piece.given) // part)
            self.gives(piece, more)
            for _ in range(1 + twice):
                said = Shared(0, piece.number, piece.given, 0 if _ else more)
                self.ledger.sharing.left(self.process(piece.maker), 0, said)
            self.settle()

    def gives(self, piece: Made, more: int) -> None:
        if more and piece.is_anybodys:
            piece.witnesses |= {pid for pid in self.pids if pid != piece.maker}
        if piece.openers or piece.witnesses:
            piece.left += more
        piece.given += more
        piece.is_made = piece.given < piece.size

    @precondition(lambda self: self.pids)
    @rule(index=_any, executes=st.booleans())
    def die(self, index: int, executes: bool) -> None:  # noqa: FBT001
        """Or execute another program, which owns nothing of the old one."""
        pid = self.pids.pop(index % len(self.pids))
        for piece in self.pieces:
            piece.openers = {opener for opener in piece.openers if opener[0] != pid}
            piece.witnesses.discard(pid)
            if piece.maker == pid and piece.is_made:
                self.gives(piece, piece.size - piece.given)
        if executes:
            assert self.ledger.lives.begin(KEY, (pid, pid), (pid << 32 | self.fresh()).to_bytes(16, "big"))
            self.pids.append(pid)
        else:
            self.ledger.lives.died(self.process(pid), 1)
        self.settle()

    @rule()
    def restart(self) -> None:
        self.ledger = restarted(self.kept, LIMIT)
        for pid in self.pids:
            assert self.ledger.lives.resume(KEY, (pid, pid), self.process(pid).token)

    def settle(self) -> None:
        """Return credit, and take a sample."""
        for pid in self.pids:
            self.ledger.accounting.returned(self.process(pid), 0, Amounts(self.made_by(pid), self.made_by(pid)))
        shown = {pid: self.made_by(pid) for pid in self.pids if self.made_by(pid)}
        rules.apply(self.ledger, rules.begin(self.ledger, CARD, 10), rules.Shown(shown, {pid: pid for pid in shown}))
        self.released()
        self.pieces = [piece for piece in self.pieces if piece.is_made or piece.left]

    def released(self) -> None:
        for piece in self.pieces:
            if not (piece.openers or piece.witnesses):
                piece.left = 0

    @invariant()
    def what_is_charged_is_what_the_card_has(self) -> None:
        on_card = sum((piece.size - piece.given if piece.is_made else 0) + piece.left for piece in self.pieces)
        assert self.ledger.containers[KEY].charged(0) == on_card

    def teardown(self) -> None:
        while self.pids:
            self.die(0, executes=False)
        self.what_is_charged_is_what_the_card_has()
        assert not self.kept.rows
        assert not self.kept.pieces


World.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=40)
TestPiecesInAnyOrder = pytest.mark.slow(World.TestCase)
