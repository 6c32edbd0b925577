"""Containers, and processes in them that follow the protocol as the library does.

They launch only while their line is open, report that they have drained only when they have, and launch nothing more
under an epoch whose end they have reported. Some never report anything. The page must be right at the moment when it is
written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.card import RunQueueEntry
from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.line import EPOCHS, LineState, Write
from partage_isolation.timeslices.policies import by_name
from partage_plugins.api.names import CardId, Namespace
from partage_plugins.api.pods import Gang
from support.lease_simulation.standing import Line

CARDS = (CardId("one"), CardId("two"))
KEYS = tuple(BudgetKey(name) for name in "abcd")
GANG = Gang(Namespace("team"), "train", 3)
WHICH = st.integers(min_value=0, max_value=20)

Place = tuple[BudgetKey, CardId]


@dataclass(eq=False)
class Program:
    """The real state of a process."""

    place: Place
    is_deaf: bool
    """It never reports that its work is done."""
    launched: int | None = None
    """The epoch under which it launched its work in flight."""
    ended: int | None = None
    """The epoch that it reported as ended."""
    wants: bool = False


class Programs(RuleBasedStateMachine):
    policy = "virtual-time"
    in_gang: frozenset[BudgetKey] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        policy = by_name(self.policy)
        self.arbiter = Arbiter(policy=lambda _: policy, first_epoch=lambda _key, _card: EPOCHS - 3)
        self.now = 1000 * SECOND
        self.arbiter.tick(self.now)
        self.lines: dict[Place, Line] = {}
        self.grants = Counter[Place]()
        self.programs: list[Program] = []
        self.limits: dict[Place, tuple[int, int]] = {}

    # ---- State -------------------------------------------------------------------------------------------------------

    def entry(self, place: Place) -> RunQueueEntry:
        return self.arbiter.node.entries[place]

    def pick(self, which: int) -> Program | None:
        return self.programs[which % len(self.programs)] if self.programs else None

    def is_silent(self, program: Program) -> bool:
        return program in self.entry(program.place).silent

    def obey(self) -> None:
        """Write the page as the arbiter decided; each write must be right at that moment."""
        for act in self.arbiter.take():
            if isinstance(act, Write):
                self.write(act)

    def write(self, act: Write) -> None:
        place = act.key, act.card
        before = self.lines.get(place)
        assert before is None or act.epoch == (before.epoch + 1) % EPOCHS, "each write has an epoch of its own"
        self.lines[place] = Line(act.state, act.epoch, act.deadline_ns)
        assert act.state is not LineState.TIMESLICE or act.deadline_ns > self.now - MS
        if act.state is not LineState.CLOSED:
            self.grants[place] += 1
            self.judge(place)

    def judge(self, place: Place) -> None:
        """No other line is open, and no other container has work in flight that the arbiter still waits for."""
        for other, line in self.lines.items():
            assert other == place or other[1] != place[1] or not line.is_open(self.now), (place, other, line)
        for program in self.programs:
            if program.place[1] == place[1] and program.place[0] != place[0] and program.launched is not None:
                assert self.is_silent(program), (place, program)
                assert self.entry(program.place).counts.overlaps

    # ---- Containers --------------------------------------------------------------------------------------------------

    @rule(
        which=st.integers(0, 3),
        cards=st.sampled_from([CARDS[:1], CARDS[1:], CARDS]),
        share=st.sampled_from([0, 1, 100, 500]),
        limit=st.sampled_from([1000, 1000, 500, 100]),
    )
    def put(self, which: int, cards: tuple[CardId, ...], share: int, limit: int) -> None:
        gang = GANG if KEYS[which] in self.in_gang else None
        for card in cards:
            self.arbiter.put(KEYS[which], card, share=min(share, limit), limit=limit, gang=gang)
            self.limits[KEYS[which], card] = min(share, limit), limit
            if (KEYS[which], card) not in self.lines:
                self.write(self.arbiter.line(KEYS[which], card))
        self.obey()

    @rule(which=st.integers(0, 3))
    def drop(self, which: int) -> None:
        self.programs = [program for program in self.programs if program.place[0] != KEYS[which]]
        for places in (self.lines, self.limits):
            for place in [place for place in places if place[0] == KEYS[which]]:
                del places[place]
        self.arbiter.drop(KEYS[which])
        self.obey()

    # ---- Processes ---------------------------------------------------------------------------------------------------

    @rule(which=WHICH, is_deaf=st.sampled_from([False, False, False, True]))
    def join(self, which: int, is_deaf: bool) -> None:  # noqa: FBT001
        if self.limits and len(self.programs) < 8:
            place = list(self.limits)[which % len(self.limits)]
            program = Program(place, is_deaf)
            self.programs.append(program)
            self.arbiter.joined(*place, program, self.now)
            self.obey()

    @rule(which=WHICH)
    def join_again(self, which: int) -> None:
        """Connect again: work in flight goes on, and earlier reports no longer count."""
        program = self.pick(which)
        if program and program.launched is None:
            program.ended, program.wants = None, False
            self.arbiter.joined(*program.place, program, self.now)
            self.obey()

    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        program = self.pick(which)
        if program:
            self.programs.remove(program)
            self.arbiter.left(*program.place, program, self.now)
            self.obey()

    @rule(which=WHICH)
    def launch(self, which: int) -> None:
        """At the gate: launch, or report that it wants to."""
        program = self.pick(which)
        if program:
            self.at_gate(program)

    def at_gate(self, program: Program) -> None:
        line = self.lines[program.place]
        program.wants = not (line.is_open(self.now) and program.ended != line.epoch)
        if program.wants:
            self.arbiter.wanted(*program.place, program, line.epoch, self.now)
            self.obey()
        else:
            program.launched = line.epoch

    @rule(which=WHICH)
    def complete(self, which: int) -> None:
        program = self.pick(which)
        if program and not program.is_deaf:
            program.launched = None

    @rule(which=WHICH, early=st.booleans())
    def drain(self, which: int, early: bool) -> None:  # noqa: FBT001
        program = self.pick(which)
        if program and program.launched is None:
            self.say_drained(program, early=early)

    def say_drained(self, program: Program, *, early: bool) -> None:
        line = self.lines[program.place]
        if line.is_open(self.now) and not early:
            return
        program.ended = line.epoch
        self.arbiter.drained(*program.place, program, line.epoch, self.now, program.wants, self.now)
        self.obey()

    @rule(which=WHICH)
    def idle(self, which: int) -> None:
        program = self.pick(which)
        if program and program.launched is None and not program.wants:
            line = self.lines[program.place]
            if line.is_open(self.now):
                self.arbiter.idle(*program.place, program, line.epoch, self.now)
                self.obey()

    @rule(which=WHICH)
    def stopped(self, which: int) -> None:
        program = self.pick(which)
        if program and program.is_deaf:
            self.arbiter.stopped(*program.place, program, self.now)
