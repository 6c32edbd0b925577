"""What is paced is done as often as it may be, and no more often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_scheduler.api import Pace


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60), st.integers(1, 5))
def test_in_no_time_is_more_done_than_so_many_at_once_and_so_many_a_second(rests: list[float], at_once: int) -> None:
    pace, now, done = Pace(2, at_once=at_once), 0.0, list[float]()
    for rest in rests:
        now += rest
        if pace.due <= now:
            pace.done(now)
            done.append(now)
    for first in range(len(done)):
        for last in range(first, len(done)):
            assert last - first + 1 <= at_once + (done[last] - done[first]) * 2 + 1e-6


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_who_waits_until_it_is_due_never_waits_longer_than_for_one(rests: list[float]) -> None:
    pace, now = Pace(2, at_once=3), 0.0
    for rest in rests:
        now += rest
        assert pace.due - now <= 0.5 + 1e-6
        now = max(now, pace.due)
        pace.done(now)
