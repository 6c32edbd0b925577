"""No container sends more often than it may, and one that pauses may send again."""

from __future__ import annotations

import asyncio
import socket
import time
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.metrics import Counters
from partage_isolation.store.row_bounds import RowBounds
from partage_isolation.wire.connection import (
    BURST,
    CONTAINER_BURST,
    CONTAINER_RATE,
    NAMESPACE_BURST,
    NAMESPACE_RATE,
    RATE,
    REST_S,
    Bucket,
    Connection,
    Served,
)
from partage_isolation.wire.served import Registry


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


def test_containers_of_a_namespace_are_bounded_together_and_others_are_not() -> None:
    registry = Registry(RowBounds())
    hostile = [registry.bucket_of("hostile") for _ in range(10)]
    now_s = time.monotonic()
    assert sum(bucket.take(now_s) for bucket in hostile for _ in range(CONTAINER_BURST)) <= NAMESPACE_BURST + 10
    assert all(bucket.empty_for_s(now_s) for bucket in hostile)
    assert not registry.bucket_of("victims").empty_for_s(now_s)
    assert registry.bucket_of("hostile").empty_for_s(now_s), "a new container is no way around"
    assert hostile[0].take(now_s + 2 * NAMESPACE_BURST / NAMESPACE_RATE)


def test_work_of_one_container_is_paid_for_by_its_namespace() -> None:
    registry = Registry(RowBounds())
    one, other = registry.bucket_of("n"), registry.bucket_of("n")
    now_s = time.monotonic()
    for _ in range(3):
        one.spend(NAMESPACE_BURST)
    assert other.empty_for_s(now_s)


async def test_of_a_container_that_spent_all_no_connection_is_heard() -> None:
    """With any number of connections: otherwise one more packet of each would be read, all at the same time."""
    heard = list[bytes]()
    served = cast("Served", SimpleNamespace(bucket=Bucket(time.monotonic(), rate=1e-3, burst=1), strangers=set()))
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(50)]
    connections = [
        Connection(
            here,
            served,
            heard=lambda _, packet: heard.append(packet),
            ended=lambda _: None,
            counters=Counters(),
        )
        for here, _ in pairs
    ]
    for _, there in pairs:
        there.send(b"x")
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(heard) <= 2
    for connection in connections:
        connection.close()
    for _, there in pairs:
        there.close()


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
