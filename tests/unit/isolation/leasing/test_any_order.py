"""For any order of events, a card is one container's at a time, and no container that is guaranteed time starves.

Messages with old and forged epochs arrive between those of processes that follow the protocol.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.line import EPOCHS, LineState
from support.extent import examples
from unit.isolation.leasing.programs import CARDS, KEYS, WHICH, Programs

BOUND_NS = 25 * SECOND
_steps = st.sampled_from([0, 1, 20_000, MS, 3 * MS, 7 * MS, 25 * MS, 120 * MS, 3 * SECOND, 3600 * SECOND])


class World(Programs):
    @rule(which=WHICH, epoch=st.integers(0, EPOCHS - 1), what=st.integers(0, 2))
    def forge(self, which: int, epoch: int, what: int) -> None:
        """A message with another epoch than the line's has no effect."""
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
        for place in [(BudgetKey("nobody"), CARDS[0]), *self.limits]:
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

    # ---- Invariants --------------------------------------------------------------------------------------------------

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
        """From now on all that can report do so and launch all the time; each that is guaranteed time gets some."""
        waiting = {}
        for program in [program for program in self.programs if not program.is_deaf]:
            self.at_gate(program)
        for program in self.programs:
            share, limit = self.limits[program.place]
            is_waiting = program.wants and not self.lines[program.place].is_open(self.now)
            if is_waiting and share and limit == 1000 and self.has_no_ceiling(program.place[0]):
                waiting[program.place] = self.grants[program.place]
        end = self.now + BOUND_NS
        while waiting:
            assert self.now < end, f"{waiting} wait in vain"
            self.now = max(self.now + 2 * MS, min(self.arbiter.due or 0, self.now + 10 * MS))
            self.tick()
            self.everybody_goes_on()
            waiting = {place: grants for place, grants in waiting.items() if self.grants[place] == grants}

    def has_no_ceiling(self, key: BudgetKey) -> bool:
        with_it = self.in_gang if key in self.in_gang else {key}
        return all(limit == 1000 and share for place, (share, limit) in self.limits.items() if place[0] in with_it)

    def everybody_goes_on(self) -> None:
        for program in self.programs:
            if not program.is_deaf:
                program.launched = None
                self.at_gate(program)
                if program.launched is None:
                    self.say_drained(program, early=False)


class GangOfPods(World):
    """Three containers of one gang, and one without a gang."""

    in_gang = frozenset(KEYS[:3])

    @invariant()
    def whose_cards_differ_are_together(self) -> None:
        groups = {program.place[0]: self.entry(program.place).group for program in self.programs}
        for each in groups.values():
            assert len(each.cards) == len(each.entries), "a card is demanded once"
        of_gang = {group for key, group in groups.items() if key in self.in_gang}
        for one, other in itertools.combinations(of_gang, 2):
            assert one.cards & other.cards

    @invariant()
    def who_is_not_there_is_with_nobody(self) -> None:
        there = {program.place[0] for program in self.programs}
        for key, _ in self.limits:
            if key not in there:
                group = next(entry.group for place, entry in self.arbiter.node.entries.items() if place[0] == key)
                assert group.keys == (key,)


class StrictCaps(World):
    """The same guarantees except the last one: a container at its share waits."""

    policy = "caps"

    def teardown(self) -> None:
        pass


class Gemini(World):
    """Published policies give a card to one container at a time too."""

    policy = "gemini"

    def teardown(self) -> None:
        pass


World.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=50, deadline=None)
GangOfPods.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=50, deadline=None)
StrictCaps.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=50, deadline=None)
Gemini.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=50, deadline=None)
TestAnyOrder = pytest.mark.slow(World.TestCase)
TestGangOfPodsInAnyOrder = pytest.mark.slow(GangOfPods.TestCase)
TestCapsInAnyOrder = pytest.mark.slow(StrictCaps.TestCase)
TestGeminiInAnyOrder = pytest.mark.slow(Gemini.TestCase)
