"""Nobody speaks more often than he may, and whoever rests may speak again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.wire.connection import BURST, CONTAINER_BURST, CONTAINER_RATE, RATE, REST_S, Bucket


@given(st.lists(st.floats(min_value=0, max_value=0.01), max_size=300))
def test_over_any_time_no_more_gets_through_than_the_rate_and_a_burst(gaps: list[float]) -> None:
    bucket, now_s, through = Bucket(0.0), 0.0, 0
    for gap_s in gaps:
        now_s += gap_s
        through += bucket.take(now_s)
    assert through <= BURST + RATE * now_s


def test_after_a_rest_there_is_room_again() -> None:
    bucket = Bucket(0.0)
    while bucket.take(0.0):
        pass
    assert bucket.take(REST_S)


def test_a_container_is_bounded_by_all_its_connections_together_and_recovers() -> None:
    shared = Bucket(0.0, rate=CONTAINER_RATE, burst=CONTAINER_BURST)
    assert sum(shared.take(0.0) for _ in range(100_000)) < CONTAINER_BURST
    assert shared.take(2.5 * CONTAINER_BURST / CONTAINER_RATE)


def test_what_costs_more_is_paid_for() -> None:
    bucket = Bucket(0.0, rate=1, burst=100)
    assert sum(bucket.take(0.0, 10) for _ in range(50)) < 10


def test_it_says_how_long_it_is_empty() -> None:
    bucket = Bucket(0.0, rate=100, burst=10)
    assert bucket.empty_for_s(0.0) == 0
    while bucket.take(0.0, 5):
        pass
    bucket.take(0.0, 5)
    left_s = bucket.empty_for_s(0.0)
    assert left_s > 0
    assert bucket.empty_for_s(left_s / 2) > 0
    assert bucket.empty_for_s(left_s) == 0


def test_what_turns_out_to_cost_more_is_paid_for_afterwards() -> None:
    bucket = Bucket(0.0, rate=1, burst=100)
    taken = 0
    while bucket.take(0.0):
        bucket.spend(9)
        taken += 1
    assert taken == 10
    bucket.spend(1_000_000)
    assert 0 < bucket.empty_for_s(0.0) <= 100
