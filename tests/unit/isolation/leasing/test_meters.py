"""Parts of a card's time over the last second, ten seconds and minute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.leases.meter import Meter


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
    """Held times and pauses in any lengths: a minute's window has what was held in it."""
    meter, now, held = Meter(0), 0, 0
    for hold, pause in steps[:9]:
        meter.add(now, now + hold, hold)
        now, held = now + hold + pause, held + hold
    end = 60 * SECOND
    assert meter.windows(end).s60 * end == pytest.approx(held, abs=1)
    assert meter.total == held
