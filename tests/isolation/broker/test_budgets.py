"""Two containers with one budget, as their processes see it: one sum of memory, one turn, one broker after another."""

from __future__ import annotations

import pytest

from isolation.broker.workers import workers
from isolation.timeslices.flood import flooders, overlap_ns, overlaps
from isolation.timeslices.members import Member
from partage_isolation.timeslices.line import LineState
from partage_isolation.wire.packets import Result
from support.isolated import Contained, Isolated, until

pytestmark = pytest.mark.slow
MIB = 1 << 20


@pytest.fixture
def both(place: Isolated) -> tuple[Contained, Contained]:
    """Two containers with 1 GiB and half of the first card."""
    first = place.prepare(1024 * MIB, name="a", share=500, budget="pod")
    second = place.prepare(1024 * MIB, name="b", share=500, budget="pod", pod=first.question.pod)
    return first, second


def test_memory_of_both_together_is_held_and_each_sees_what_is_left(both: tuple[Contained, Contained]) -> None:
    with workers(both[0], 1) as (one,), workers(both[1], 1) as (other,):
        assert one.do("context()")
        assert one.do("take(500 << 20)")
        assert other.do("context()")
        assert not other.do("take(500 << 20)")
        view = "[client.view().limit, client.view().charged] "
        assert one.do(view) == other.do(view)
        assert one.do("client.view().charged") >= 628 * MIB
        one.kill()
        until(lambda: other.do("take(800 << 20)"))


def test_a_broker_that_dies_knows_the_sum_again(place: Isolated, both: tuple[Contained, Contained]) -> None:
    with workers(both[0], 1) as (one,), workers(both[1], 1) as (other,):
        assert one.do("context()")
        assert one.do("take(500 << 20)")
        both[1].lower(900 * MIB)
        place.broker.restart()
        assert [each.told().cards[0].limit_bytes for each in both] == [900 * MIB] * 2
        for each in (one, other):
            assert each.do("client.resume()") == Result.OK
        assert not other.do("client.take(400 << 20)")
        assert other.do("client.take(200 << 20)")
        assert both[0].told().cards == both[1].told().cards
        assert [len(each.told().processes) for each in both] == [1, 1]


def test_processes_of_both_have_the_card_at_once_and_a_rival_after_them(
    place: Isolated, both: tuple[Contained, Contained]
) -> None:
    rival = place.prepare(share=500)
    with flooders(*both, rival) as (one, two, other):
        other.more_turns(10)
        for each in (one, two):
            each.more_turns(5)
        assert overlap_ns(one, two) > 0
        beside = overlap_ns(one, other) + overlap_ns(two, other)
        assert not beside or overlaps(place)


def state(container: Contained) -> str | None:
    """State of its time slice."""
    time = container.told().cards[0].time
    return None if time is None else time.state


def test_a_container_that_starts_late_finds_the_card_open(place: Isolated) -> None:
    first = place.prepare(name="a", budget="pod")
    with flooders(first):
        until(lambda: state(first) == "free")
        late = place.prepare(name="b", budget="pod", pod=first.question.pod)
        with Member(late.socket) as member:
            assert member.join() == Result.OK
            assert member.line().state is LineState.FREE
