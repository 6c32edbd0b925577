"""Containers take turns on a card, one after the other, by their guarantees; an idle card is available to all."""

from __future__ import annotations

import pytest

from isolation.timeslices.flood import flooders, overlap_ns, overlaps
from isolation.timeslices.members import Member
from partage_isolation.timeslices.line import LineState
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Result, What
from support.isolated import Isolated, until

pytestmark = pytest.mark.slow
MIB = 1 << 20


def test_who_is_alone_is_free_until_another_comes(place: Isolated) -> None:
    with Member(place.prepare(share=300).socket) as one:
        assert not one.line().is_open
        assert one.join() == Result.OK
        assert one.wait_open().state is LineState.FREE
        with Member(place.prepare(share=300).socket) as other:
            other.join()
            assert one.line().state is LineState.SOLE
            assert not other.line().is_open
        until(lambda: one.line().state is LineState.FREE)


def test_two_have_the_card_one_after_the_other(place: Isolated) -> None:
    """If this process is so slow that it is taken for silent, the broker logs it."""
    with Member(place.prepare(share=500).socket) as one, Member(place.prepare(share=500).socket) as other:
        for each in (one, other):
            each.join()
        holder, waiter, were_both = one, other, False
        holder.wait_open()
        for _ in range(5):
            waiter.want()
            holder.wait_over(holder.line())
            were_both |= holder.line().is_open and waiter.line().is_open
            holder.drained(blocked=True)
            waiter.wait_open()
            holder, waiter = waiter, holder
        assert not were_both or overlaps(place)


def test_every_change_of_a_line_is_told_once(place: Isolated) -> None:
    with Member(place.prepare(share=500).socket) as one, Member(place.prepare(share=500).socket) as other:
        one.join()
        one.wait_open()
        other.join()
        other.want()
        one.wait_over(one.line())
        one.drained()
        other.wait_open()
        epochs = list[int]()

        def all_told() -> bool:
            hints = iter(one.hint, None)
            epochs.extend(hint.timeslice.epoch for hint in hints if (hint.what, hint.card) == (What.LINE, 0))
            return epochs[-1] == one.line().epoch

        until(all_told)
        assert len(set(epochs)) == len(epochs)


def test_all_processes_of_a_container_have_one_lease(place: Isolated) -> None:
    container, rival = place.prepare(share=500), place.prepare(share=500)
    with flooders(container, container, rival) as (one, two, other):
        other.more_turns(10)
        for each in (one, two):
            each.more_turns(5)
        assert overlap_ns(one, two) > 0


@pytest.mark.parametrize("card", [1, wire.NO_CARD])
def test_a_card_that_was_not_granted_is_unknown(place: Isolated, card: int) -> None:
    with Member(place.prepare().socket) as one:
        assert one.join(card) == Result.UNKNOWN
        for what in (What.WANT, What.DRAINED, What.IDLE):
            one.say(what, card, wire.TimeSlice())
        assert one.join(0) == Result.OK
        assert one.hint() is None
