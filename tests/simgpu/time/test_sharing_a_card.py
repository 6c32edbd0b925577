"""A card's time is shared by processes: nothing is lost, none is favoured, and reading changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simgpu.time.lines import DAEMON, NEVER, RUNS, SLICE, Model, Timeline

A_DAY = 86_400 * 10**9
_TIMES = st.one_of(st.integers(1, 3 * SLICE), st.sampled_from([SLICE - 1, SLICE, SLICE + 1, 4 * SLICE, 100 * SLICE]))
_STEPS = st.lists(
    st.tuples(st.one_of(st.just(0), _TIMES), st.integers(0, 4), st.one_of(_TIMES, st.just(0), st.just(A_DAY))),
    max_size=25,
)
"""After a time, this row publishes an amount of further work."""


@pytest.fixture
def line() -> Iterator[Timeline]:
    with closing(Timeline()) as line:
        yield line


def _begun(rows: int) -> Timeline:
    line = Timeline()
    for row in range(rows):
        line.begin(row)
    return line


def _play(line: Timeline, steps: list[tuple[int, int, int]], looks: list[int] | None = None) -> int:
    """Play the steps as processes do: before it publishes after a rest, a process advances the card to now.

    Returns a moment after the last step.
    """
    now = 0
    for time, row, work in steps:
        for look in looks or ():
            line.advance(now + look % (time + 1), writer=(look % 3, DAEMON, row)[look % 2])
        now += time
        line.advance(now, writer=row)
        line.publish(row, max(line.published(row), line.share(row).received) + work)
    line.advance(now + 7 * SLICE)
    return now + 7 * SLICE


@given(_STEPS)
def test_time_passes_as_the_rules_say_to_the_nanosecond(steps: list[tuple[int, int, int]]) -> None:
    line, model, now = _begun(5), Model(5), 0
    with closing(line):
        _play(line, steps)
        for time, row, work in steps:
            now += time
            model.advance(now)
            model.published[row] = max(model.published[row], model.received[row]) + work
        model.advance(now + 7 * SLICE)
        assert line.received(5) == model.received
        assert [line.share(row).remembered() for row in range(5)] == [runs[-RUNS:] for runs in model.runs]
        assert [line.share(row).runs for row in range(5)] == [len(runs) for runs in model.runs]


@given(_STEPS, st.lists(st.integers(0, 10**9), min_size=1, max_size=6))
def test_who_looks_and_when_makes_no_difference(steps: list[tuple[int, int, int]], looks: list[int]) -> None:
    once, often = _begun(5), _begun(5)
    with closing(once), closing(often):
        _play(once, steps)
        _play(often, steps, looks)
        assert once.received(5) == often.received(5)
        assert [once.share(row).remembered() for row in range(5)] == [often.share(row).remembered() for row in range(5)]


@given(st.integers(2, 6), st.lists(st.tuples(_TIMES, st.integers(0, 5), _TIMES), max_size=20))
def test_two_that_always_have_work_never_differ_by_more_than_a_slice(
    others: int, steps: list[tuple[int, int, int]]
) -> None:
    line, now = _begun(others + 2), 0
    with closing(line):
        line.publish(0, NEVER)
        line.publish(others + 1, NEVER)
        for time, other, work in steps:
            now += time
            line.advance(now)
            received = line.received(others + 2)
            assert abs(received[0] - received[-1]) <= SLICE
            row = 1 + other % others
            line.publish(row, received[row] + work)


@given(st.lists(_TIMES, min_size=1, max_size=12), st.data())
def test_the_wall_time_of_a_local_time_is_exact_within_the_remembered_runs(
    times: list[int], data: st.DataObject
) -> None:
    line, model = _begun(2), Model(2)
    with closing(line):
        for row in (0, 1):
            line.publish(row, sum(times) // 2)
            model.published[row] = sum(times) // 2
        line.advance(sum(times))
        model.advance(sum(times))
        share, runs = line.share(0), model.runs[0]
        local = data.draw(st.integers(min(runs[-RUNS:][0][1] + 1, share.received), share.received))
        wall, since = max((run for run in runs if run[1] < local), default=runs[0])
        assert line.wall_of(share, local) == wall + local - since


def test_a_local_time_that_is_forgotten_is_bounded_by_what_is_remembered(line: Timeline) -> None:
    for row in (0, 1):
        line.begin(row)
        line.publish(row, NEVER)
    line.advance(100 * SLICE)
    share = line.share(1)  # the first in turn
    assert line.wall_of(share, 1) == share.remembered()[0][0] == 100 * SLICE - 2 * RUNS * SLICE


def test_a_time_that_is_reached_just_before_a_break_is_not_after_it(line: Timeline) -> None:
    for row in (0, 1):
        line.begin(row)
        line.publish(row, 2 * SLICE)
    line.advance(4 * SLICE)
    first = min((0, 1), key=lambda row: line.wall_of(line.share(row), SLICE))
    assert line.wall_of(line.share(first), SLICE) == SLICE
    assert line.wall_of(line.share(first), SLICE + 1) == 2 * SLICE + 1


def test_ten_years_of_idleness_pass_at_once(line: Timeline) -> None:
    line.begin(3)
    line.advance(3650 * A_DAY)
    line.publish(3, 5)
    line.advance(3650 * A_DAY + 10)
    assert line.share(3).received == 5


def test_ten_years_of_endless_work_pass_at_once(line: Timeline) -> None:
    """Slice by slice this would be 10^11 steps."""
    for row in range(3):
        line.begin(row)
        line.publish(row, NEVER)
    line.advance(3650 * A_DAY)
    received = line.received(3)
    assert sum(received) == 3650 * A_DAY
    assert max(received) - min(received) <= SLICE


def test_a_slice_may_have_another_length(line: Timeline) -> None:
    line.slice(10)
    for row in (0, 1):
        line.begin(row)
        line.publish(row, NEVER)
    line.advance(15)
    assert sorted(line.received(2)) == [5, 10]


def test_a_lost_card_gives_nobody_time_and_later_does_not_make_up_for_it(line: Timeline) -> None:
    line.begin(0)
    line.publish(0, NEVER)
    line.advance(100)
    line.freeze(frozen=True)
    line.advance(5000)
    assert line.share(0).received == 100
    line.freeze(frozen=False)
    line.advance(5010)
    assert line.share(0).received == 110


def test_a_row_that_is_taken_from_a_dead_process_has_no_work_left(line: Timeline) -> None:
    line.begin(0)
    line.publish(0, NEVER)
    line.advance(100)
    line.begin(0)
    line.advance(10_000)
    assert line.share(0).received == line.published(0) == 100
