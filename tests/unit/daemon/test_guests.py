"""Which connection is closed when there are too many idle ones: never a newer one, and never one of a peer with few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.acceptor import Guests, origin_of


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60))
def test_bounds_hold_and_the_newest_stays(coming: list[tuple[str, bool]]) -> None:
    guests = Guests[int](most=6, most_of_one=3)
    there: dict[int, str] = {}
    for number, (origin, leaves) in enumerate(coming):
        there[number] = origin
        gone = guests.come(number, origin)
        if gone is not None:
            of_one = [each for each, whose in there.items() if whose == there[gone]]
            assert gone == of_one[0] != number
            counts = [list(there.values()).count(each) for each in "abcdef"]
            assert len(of_one) == (max(counts) if len(there) > 6 and counts["abcdef".index(origin)] <= 3 else 4)
            del there[gone]
        if leaves and number in there:
            guests.go(number, there.pop(number))
            guests.go(number, origin)
        assert len(guests) == len(there) <= 6
        assert max((list(there.values()).count(each) for each in "abcdef"), default=0) <= 3


def test_whoever_fills_it_from_many_addresses_loses_its_own() -> None:
    guests = Guests[str](most=8, most_of_one=4)
    guests.come("probe", "node")
    for number in range(100):
        assert guests.come(f"hog-{number}", f"pod-{number % 3}") != "probe"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("fd00::1:2:3:4", "fd00::ffff:ffff:ffff:ffff", True),
        ("fd00:0:0:1::1", "fd00:0:0:2::1", False),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_an_origin_is_what_one_host_can_not_choose(one: str, other: str, *, same: bool) -> None:
    assert (origin_of(one) == origin_of(other)) is same
