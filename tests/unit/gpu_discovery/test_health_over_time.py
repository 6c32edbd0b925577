"""Invariants of a card's health hold for any sequence of events."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from partage_gpu.discovery.causes import CAME_BACK, GONE, HARMLESS, Away
from partage_gpu.discovery.health import (
    LONGEST_QUIET_S,
    History,
    Rules,
    let_go,
    recalled,
    stepped,
    told,
)
from partage_gpu.nvml.facts import CardFacts
from partage_plugins.api.health import OK
from unit.gpu_discovery.making import gpu

QUIET_S = 60.0
RULES = Rules(quiet_s=QUIET_S)
SHOWN = st.one_of(
    st.builds(
        gpu,
        fault=st.sampled_from((None, None, None, "GPU is lost")),
        needs_reset=st.booleans(),
        row_remap_failed=st.just(value=False) | st.booleans(),
        ecc_uncorrected=st.none() | st.integers(0, 3),
    ),
    st.sampled_from((GONE, Away("the NVIDIA driver does not answer"))),
)
XIDS = st.lists(st.sampled_from((13, 31, 48, 63, 74, 79, 94, 95, 4711)), max_size=3)
SECONDS = st.sampled_from((0.0, 1.0, 5.0, 30.0, 59.0, 60.0, 600.0, 4000.0, 90000.0))


class OneCard(RuleBasedStateMachine):
    """One card to which anything may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s, self.history = 0.0, History()
        self.shown: CardFacts | Away = gpu()
        self.changes: list[tuple[float, str]] = [(0.0, "ok")]
        self.is_wrong = self.is_recalled = False
        self.wrong_at_s = float("-inf")

    def _look(self, xids: list[int]) -> None:
        self.history = stepped(self.history, self.now_s, shown=self.shown, xids=xids, rules=RULES)
        has_sign = isinstance(self.shown, Away) or bool(
            self.shown.fault or self.shown.needs_reset or self.shown.row_remap_failed
        )
        self.is_wrong = has_sign or any(number not in HARMLESS for number in xids)
        if self.is_wrong:
            self.wrong_at_s = self.now_s
        self._note()

    def _note(self) -> None:
        health = told(self.history).state
        if health != self.changes[-1][1]:
            self.changes.append((self.now_s, health))

    @rule(shown=SHOWN, xids=XIDS, after_s=SECONDS)
    def something_happens(self, shown: CardFacts | Away, xids: list[int], after_s: float) -> None:
        self.now_s += after_s
        self.shown = shown
        self._look(xids)

    @rule(after_s=SECONDS)
    def nothing_happens(self, after_s: float) -> None:
        """Without changes the health changes only to `came back` or `ok`."""
        self._look([])
        before = told(self.history)
        self.now_s += after_s
        self._look([])
        after = told(self.history)
        assert after == before or after in (OK, CAME_BACK.health)

    @rule(xids=XIDS, after_s=SECONDS)
    def it_is_let_go(self, xids: list[int], after_s: float) -> None:
        self.now_s += after_s
        self.history = let_go(self.history, self.now_s, xids=xids, rules=RULES)
        self.is_wrong = any(number not in HARMLESS for number in xids)
        if self.is_wrong:
            self.wrong_at_s = self.now_s
        self._note()

    @rule(after_s=SECONDS)
    def the_process_starts_anew(self, after_s: float) -> None:
        self.now_s += after_s
        before = told(self.history)
        self.history = recalled(before, self.now_s, RULES)
        assert told(self.history) == before

    @precondition(lambda self: self.changes[-1][1] != "ok")
    @rule()
    def all_is_well_for_long(self) -> None:
        """Every problem clears after enough quiet time."""
        self.shown = gpu(ecc_uncorrected=0)
        for _ in range(4):
            self._look([])
            self.now_s += LONGEST_QUIET_S
        self._look([])
        assert told(self.history) == OK

    @invariant()
    def it_is_not_ok_with_a_fault(self) -> None:
        if self.is_wrong:
            assert told(self.history).state != "ok"

    @invariant()
    def it_is_not_ok_soon_after_a_fault(self) -> None:
        if told(self.history).state == "ok":
            assert self.now_s - self.wrong_at_s >= QUIET_S

    @invariant()
    def it_does_not_flap(self) -> None:
        became_bad_s = 0.0
        for (_, before), (at_s, health) in zip(self.changes, self.changes[1:], strict=False):
            if before == "ok":
                became_bad_s = at_s
            if health == "ok":
                assert at_s - became_bad_s >= QUIET_S

    @invariant()
    def what_is_not_ok_has_a_cause_and_words(self) -> None:
        health = told(self.history)
        assert (health.cause is None) == (health.why is None) == (health.state == "ok")


TestOneCard = OneCard.TestCase
TestOneCard.settings = settings(stateful_step_count=30)
