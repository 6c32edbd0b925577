"""Whatever order things happen in, a card is one container's at a time, and nobody who is promised time waits for ever.

A world of processes that keep to the protocol as the library does: they launch only while their line is open, say that
they have drained only when they have, and launch nothing more under an epoch whose end they have said. Some never say
anything. Messages with old and forged epochs come between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from partage_isolation.leasing.acts import Write
from partage_isolation.leasing.arbiter import Arbiter
from partage_isolation.leasing.policies import by_name
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.timing import MS, SECOND
from partage_isolation.leasing.words import EPOCHS, LineState
from partage_plugins.vocabulary.names import CardId, ContainerKey

CARDS = (CardId("one"), CardId("two"))
KEYS = tuple(ContainerKey(name) for name in "abcd")
BOUND_NS = 25 * SECOND
_which = st.integers(min_value=0, max_value=20)
_steps = st.sampled_from([0, 1, 20_000, MS, 3 * MS, 7 * MS, 25 * MS, 120 * MS, 3 * SECOND, 3600 * SECOND])

Place = tuple[ContainerKey, CardId]


@dataclass(eq=False)
class Program:
    """A process as it really is."""

    place: Place
    is_deaf: bool
    """It never says that its work is done."""
    launched: int | None = None
    """The epoch under which it launched what is still under way."""
    ended: int | None = None
    """The epoch that it said to be over."""
    wants: bool = False


@dataclass
class Line:
    state: LineState = LineState.CLOSED
    epoch: int = -1
    deadline: int = 0
    grants: int = 0

    def is_open(self, now: int) -> bool:
        return self.state >= LineState.SOLE or (self.state is LineState.LEASE and now < self.deadline)


@dataclass
class Page:
    lines: dict[Place, Line] = field(default_factory=dict[Place, Line])


class World(RuleBasedStateMachine):
    """See the module."""

    policy = "virtual-time"

    def __init__(self) -> None:
        super().__init__()
        policy = by_name(self.policy)
        self.arbiter = Arbiter(policy=lambda _: policy, first_epoch=lambda _key, _card: EPOCHS - 3)
        self.now = 1000 * SECOND
        self.arbiter.tick(self.now)
        self.lines: dict[Place, Line] = {}
        self.programs: list[Program] = []
        self.limits: dict[Place, tuple[int, int]] = {}

    # ---- What is there -----------------------------------------------------------------------------------------------

    def seat(self, place: Place) -> Seat:
        return self.arbiter.node.seats[place]

    def pick(self, which: int) -> Program | None:
        return self.programs[which % len(self.programs)] if self.programs else None

    def is_silent(self, program: Program) -> bool:
        return program in self.seat(program.place).silent

    def obey(self) -> None:
        """The page is written; what the writes say must be right at that moment."""
        for act in self.arbiter.take():
            if isinstance(act, Write):
                self.write(act)

    def write(self, act: Write) -> None:
        place = act.key, act.card
        line = self.lines.setdefault(place, Line())
        assert line.epoch < 0 or act.epoch == (line.epoch + 1) % EPOCHS, "each write has an epoch of its own"
        line.state, line.epoch, line.deadline = act.state, act.epoch, act.deadline_ns
        assert act.state is not LineState.LEASE or act.deadline_ns > self.now - MS
        if act.state is not LineState.CLOSED:
            line.grants += 1
            self.judge(place)

    def judge(self, place: Place) -> None:
        """Nobody else's line is open, and nobody else's work is under way that is still waited for."""
        for other, line in self.lines.items():
            assert other == place or other[1] != place[1] or not line.is_open(self.now), (place, other, line)
        for program in self.programs:
            if program.place[1] == place[1] and program.place[0] != place[0] and program.launched is not None:
                assert self.is_silent(program), (place, program)
                assert self.seat(program.place).counts.overlaps

    # ---- Containers --------------------------------------------------------------------------------------------------

    @rule(
        which=st.integers(0, 3),
        cards=st.sampled_from([CARDS[:1], CARDS[1:], CARDS]),
        share=st.sampled_from([0, 1, 100, 500]),
        limit=st.sampled_from([1000, 1000, 500, 100]),
    )
    def put(self, which: int, cards: tuple[CardId, ...], share: int, limit: int) -> None:
        for card in cards:
            self.arbiter.put(KEYS[which], card, share=min(share, limit), limit=limit)
            self.limits[KEYS[which], card] = min(share, limit), limit
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

    @rule(which=_which, is_deaf=st.sampled_from([False, False, False, True]))
    def join(self, which: int, is_deaf: bool) -> None:  # noqa: FBT001
        if self.limits and len(self.programs) < 8:
            place = list(self.limits)[which % len(self.limits)]
            program = Program(place, is_deaf)
            self.programs.append(program)
            self.arbiter.joined(*place, program, self.now)
            self.obey()

    @rule(which=_which)
    def join_again(self, which: int) -> None:
        """A new connection: what was under way goes on, and what was said counts no more."""
        program = self.pick(which)
        if program and program.launched is None:
            program.ended, program.wants = None, False
            self.arbiter.joined(*program.place, program, self.now)
            self.obey()

    @rule(which=_which)
    def leave(self, which: int) -> None:
        program = self.pick(which)
        if program:
            self.programs.remove(program)
            self.arbiter.left(*program.place, program, self.now)
            self.obey()

    @rule(which=_which)
    def launch(self, which: int) -> None:
        """At the gate: launches, or says that it wants to."""
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

    @rule(which=_which)
    def complete(self, which: int) -> None:
        program = self.pick(which)
        if program and not program.is_deaf:
            program.launched = None

    @rule(which=_which, early=st.booleans())
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

    @rule(which=_which)
    def idle(self, which: int) -> None:
        program = self.pick(which)
        if program and program.launched is None and not program.wants:
            line = self.lines[program.place]
            if line.is_open(self.now):
                self.arbiter.idle(*program.place, program, line.epoch, self.now)
                self.obey()

    @rule(which=_which)
    def stopped(self, which: int) -> None:
        program = self.pick(which)
        if program and program.is_deaf:
            self.arbiter.stopped(*program.place, program, self.now)

    @rule(which=_which, epoch=st.integers(0, EPOCHS - 1), what=st.integers(0, 2))
    def forge(self, which: int, epoch: int, what: int) -> None:
        """An epoch that is not the line's own says nothing."""
        program = self.pick(which)
        if program is None or epoch == self.lines[program.place].epoch:
            return
        before = self.arbiter.due
        if what == 0:
            self.arbiter.wanted(*program.place, program, epoch, self.now)
        elif what == 1:
            self.arbiter.drained(*program.place, program, epoch, epoch, True, self.now)
        else:
            self.arbiter.idle(*program.place, program, epoch, self.now)
        assert not self.arbiter.take()
        assert self.arbiter.due == before

    @rule()
    def strangers_say_things(self) -> None:
        for place in [(ContainerKey("nobody"), CARDS[0]), *self.limits]:
            self.arbiter.wanted(*place, "stranger", 0, self.now)
            self.arbiter.drained(*place, "stranger", 0, 0, True, self.now)
            self.arbiter.left(*place, "stranger", self.now)
        assert not self.arbiter.take()

    # ---- Time --------------------------------------------------------------------------------------------------------

    @rule(step=_steps)
    def time_passes(self, step: int) -> None:
        self.now += step
        self.tick()

    @rule()
    def it_is_due(self) -> None:
        if self.arbiter.due is not None:
            self.now = max(self.now, self.arbiter.due)
            self.tick()

    def tick(self) -> None:
        self.arbiter.tick(self.now)
        self.obey()
        assert self.arbiter.due is None or self.arbiter.due > self.now

    # ---- What always holds -------------------------------------------------------------------------------------------

    @invariant()
    def a_card_is_open_for_one_container(self) -> None:
        for card in CARDS:
            open_ = [place for place, line in self.lines.items() if place[1] == card and line.is_open(self.now)]
            assert len(open_) <= 1, open_

    @invariant()
    def free_only_alone(self) -> None:
        for place, line in self.lines.items():
            if line.state is LineState.FREE and (self.arbiter.due is None or self.arbiter.due > self.now):
                assert all(program.place[0] == place[0] for program in self.programs if program.place[1] == place[1])

    @invariant()
    def what_is_charged_is_the_time_that_was_held(self) -> None:
        for card in self.arbiter.node.cards.values():
            assert card.charged == card.busy

    @invariant()
    def figures_are_parts(self) -> None:
        for shares in self.arbiter.shares(self.now).values():
            for windows in (shares.got, shares.wanted):
                assert all(0 <= part <= 1.0001 for part in windows), shares

    def teardown(self) -> None:
        """From here on everybody who can speaks, and launches all the time: each who is promised time gets some."""
        waiting = {}
        for program in [program for program in self.programs if not program.is_deaf]:
            self.at_gate(program)
        for program in self.programs:
            share, limit = self.limits[program.place]
            is_waiting = program.wants and not self.lines[program.place].is_open(self.now)
            if is_waiting and share and limit == 1000 and self.has_no_ceiling(program.place[0]):
                waiting[program.place] = self.lines[program.place].grants
        end = self.now + BOUND_NS
        while waiting:
            assert self.now < end, f"{waiting} wait in vain"
            self.now = max(self.now + 2 * MS, min(self.arbiter.due or 0, self.now + 10 * MS))
            self.tick()
            self.everybody_goes_on()
            waiting = {place: grants for place, grants in waiting.items() if self.lines[place].grants == grants}

    def has_no_ceiling(self, key: ContainerKey) -> bool:
        return all(limit == 1000 and share for place, (share, limit) in self.limits.items() if place[0] == key)

    def everybody_goes_on(self) -> None:
        for program in self.programs:
            if not program.is_deaf:
                program.launched = None
                self.at_gate(program)
                if program.launched is None:
                    self.say_drained(program, early=False)


class StrictCaps(World):
    """The same promises, but the last: who is at its share waits."""

    policy = "caps"

    def teardown(self) -> None:
        """Nothing."""


class Gemini(World):
    """Published policies too keep a card for one."""

    policy = "gemini"

    def teardown(self) -> None:
        """Nothing."""


World.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
StrictCaps.TestCase.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)
Gemini.TestCase.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)
TestAnyOrder = pytest.mark.slow(World.TestCase)
TestCapsInAnyOrder = pytest.mark.slow(StrictCaps.TestCase)
TestGeminiInAnyOrder = pytest.mark.slow(Gemini.TestCase)
