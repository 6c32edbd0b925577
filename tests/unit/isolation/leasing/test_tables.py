"""The tables of the arbiter: the life of a time slice, policies, meters and the word of a line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.lifecycle import (
    LINES,
    OPEN,
    TRAITS,
    TRANSITIONS,
    TimeSliceEvent,
    TimeSliceState,
    after,
    mermaid,
)
from partage_isolation.timeslices.line import EPOCHS, LineState, pack, unpack
from partage_isolation.timeslices.line import after as next_epoch
from partage_isolation.timeslices.meter import Meter
from partage_isolation.timeslices.policies import DEFAULT, NAMES, by_name
from partage_isolation.timeslices.policies.policy import Tally
from partage_isolation.timeslices.policies.virtual_time import VirtualTime

PAGE: Final = (Path(__file__).parents[4] / "docs/time-slices.md").read_text()


def test_the_drawing_in_the_documents_is_made_from_the_table() -> None:
    assert f"```mermaid\n{mermaid()}\n```" in PAGE


def test_each_state_can_be_reached() -> None:
    reached = {TimeSliceState.EMPTY}
    for _ in TimeSliceState:
        reached |= {then for (state, _), then in TRANSITIONS.items() if state in reached}
    assert reached == set(TimeSliceState)


def test_each_event_happens_to_some_state() -> None:
    assert {event for _, event in TRANSITIONS} == set(TimeSliceEvent)


def test_from_each_state_the_container_can_leave() -> None:
    assert all(
        after(state, TimeSliceEvent.LEFT) is TimeSliceState.EMPTY
        for state in TimeSliceState
        if state is not TimeSliceState.EMPTY
    )


def test_whoever_is_open_is_closed_before_he_can_wait_again() -> None:
    assert all((state, TimeSliceEvent.WANTED) not in TRANSITIONS for state in OPEN)
    assert {after(state, TimeSliceEvent.ENDED) for state in OPEN} == {TimeSliceState.CLOSING}


def test_lines_are_open_for_what_is_open_and_nothing_else() -> None:
    assert {life for life, line in LINES.items() if line is not LineState.CLOSED} == OPEN
    assert {life for life, traits in TRAITS.items() if traits.is_open} == OPEN


def test_who_is_open_or_waits_or_has_work_under_way_is_busy() -> None:
    assert {life for life, traits in TRAITS.items() if traits.is_busy} == OPEN | {
        TimeSliceState.WAITING,
        TimeSliceState.CLOSING,
    }


@pytest.mark.parametrize(
    ("trait", "state"),
    [
        ("is_waiting", TimeSliceState.WAITING),
        ("has_timeslice", TimeSliceState.TIMED),
        ("is_closing", TimeSliceState.CLOSING),
    ],
)
def test_one_state_alone_waits_has_a_deadline_or_drains(trait: str, state: TimeSliceState) -> None:
    assert [each for each, traits in TRAITS.items() if getattr(traits, trait)] == [state]


def test_what_is_not_in_the_table_does_not_happen() -> None:
    with pytest.raises(KeyError):
        after(TimeSliceState.IDLE, TimeSliceEvent.ENDED)


def test_the_page_names_each_policy() -> None:
    page = (Path(__file__).parents[4] / "docs/isolation.md").read_text()
    assert all(f"| `{name}` |" in page for name in NAMES)


# ---- Policies --------------------------------------------------------------------------------------------------------


NOW = 1000 * SECOND
OURS = VirtualTime()


def test_each_is_chosen_by_its_name() -> None:
    assert DEFAULT in NAMES
    assert {name for name in NAMES if not by_name(name).is_metering} == {"free-run"}
    with pytest.raises(KeyError):
        by_name("fair")


def test_without_a_share_one_is_behind_everybody_with_one() -> None:
    none, tiny = Tally(0, 1000), Tally(1, 1000)
    OURS.charge(tiny, 3600 * SECOND, NOW)
    assert OURS.rank(tiny, NOW) < OURS.rank(none, NOW)


def test_debt_stays_and_credit_ends() -> None:
    owing, rested = Tally(500, 1000, virtual=10 * SECOND), Tally(500, 1000, virtual=0)
    OURS.came(owing, SECOND)
    OURS.came(rested, SECOND)
    assert (owing.virtual, rested.virtual) == (10 * SECOND, 700 * MS)


@given(st.integers(1, 999), st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_nobody_gets_above_the_ceiling_for_long(limit: int, waits: list[int]) -> None:
    """The longest turns as often as possible: the sum stays below the limit plus one burst."""
    account, now, held = Tally(0, limit), NOW, 0
    for wait in waits:
        now = max(now + wait * MS, OURS.opens_at(account, now + wait * MS))
        run = OURS.run_ns(account, now, is_contended=True)
        assert run is not None
        assert run >= 9 * MS
        now, held = now + run, held + run
        OURS.charge(account, run, now)
    assert held <= (now - NOW) * limit // 1000 + OURS.timing.ceiling_most_ns + MS


def test_caps_hold_even_where_nobody_else_wants_the_card() -> None:
    caps, account = by_name("caps"), Tally(250, 1000)
    assert caps.run_ns(account, caps.opens_at(account, NOW), is_contended=False) is not None
    caps.charge(account, SECOND, NOW + SECOND)
    assert caps.opens_at(account, NOW + SECOND) > NOW + 2 * SECOND
    whole = Tally(1000, 1000)
    assert caps.run_ns(whole, NOW, is_contended=False) is None


# ---- Meters ----------------------------------------------------------------------------------------------------------


def test_half_of_the_time_is_half() -> None:
    meter = Meter(0)
    for second in range(70):
        meter.add(second * SECOND, second * SECOND + SECOND // 2, SECOND // 2)
    assert meter.windows(70 * SECOND) == pytest.approx((0.5, 0.5, 0.5))


def test_what_is_over_is_forgotten_window_by_window() -> None:
    meter = Meter(0)
    meter.add(0, 2 * SECOND, 2 * SECOND)
    assert meter.windows(2 * SECOND) == pytest.approx((1, 1, 1))
    assert meter.windows(4 * SECOND) == pytest.approx((0, 0.5, 0.5))
    assert meter.windows(20 * SECOND) == pytest.approx((0, 0, 0.1))
    assert meter.windows(200 * SECOND) == (0, 0, 0)


def test_a_young_meter_tells_of_the_time_that_there_was() -> None:
    meter = Meter(0)
    meter.add(0, 300 * MS, 300 * MS)
    assert meter.windows(300 * MS) == pytest.approx((1, 1, 1))
    assert Meter(0).windows(0) == (0, 0, 0)


def test_an_amount_that_is_longer_than_the_memory_fills_it_and_no_more() -> None:
    meter = Meter(0)
    meter.add(0, 3600 * SECOND, 3600 * SECOND)
    assert meter.windows(3600 * SECOND) == pytest.approx((1, 1, 1))


@given(st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 3 * SECOND)), max_size=20))
def test_nothing_gets_lost(steps: list[tuple[int, int]]) -> None:
    """Hold times and pauses of any length: a minute's window contains all time held in it."""
    meter, now, held = Meter(0), 0, 0
    for hold, pause in steps[:9]:
        meter.add(now, now + hold, hold)
        now, held = now + hold + pause, held + hold
    end = 60 * SECOND
    assert meter.windows(end).s60 * end == pytest.approx(held, abs=1)
    assert meter.total == held


# ---- The word of a line ----------------------------------------------------------------------------------------------


@given(st.sampled_from(LineState), st.integers(0, EPOCHS - 1), st.integers(0, (1 << 58) - 1))
def test_what_is_packed_is_what_is_read_with_the_deadline_rounded_down(
    state: LineState, epoch: int, deadline: int
) -> None:
    word = pack(state, epoch, deadline)
    assert 0 <= word < 1 << 64
    assert unpack(word) == (state, epoch, deadline - deadline % 16384)


def test_an_empty_page_is_closed() -> None:
    assert unpack(0) == (LineState.CLOSED, 0, 0)
    assert pack(LineState.CLOSED, 0, 0) == 0


def test_the_fields_lie_where_the_library_looks_for_them() -> None:
    assert pack(LineState.FREE, 1, 16384) == 3 | 1 << 3 | 1 << 20


def test_epochs_come_round() -> None:
    assert next_epoch(EPOCHS - 1) == 0
    assert pack(LineState.TIMESLICE, EPOCHS, 0) == pack(LineState.TIMESLICE, 0, 0)
