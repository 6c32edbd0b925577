"""The broker may die at any moment: leases run out by themselves, and the next one serves whoever joins."""

from __future__ import annotations

import pytest

from isolation.leases.members import Member
from partage_isolation.leases.line import LineState
from partage_isolation.wire.packets import Result
from support.isolated import Isolated, until

pytestmark = pytest.mark.slow


def test_a_lease_runs_out_and_the_next_broker_has_a_page_of_its_own(place: Isolated) -> None:
    container, rival = place.prepare(share=500), place.prepare(share=500)
    with Member(container.socket) as one, Member(rival.socket) as other:
        one.join()
        other.join()
        one.wait_open()
        other.want()
        until(lambda: one.line().state is LineState.LEASE or not one.line().is_open)
        place.broker.kill()
        one.wait_over(one.line())
        old = one.line()
        place.broker.start()
        assert one.line() == old  # nobody writes the old page any more
        assert one.resume() == Result.OK
        assert one.line().state is LineState.CLOSED
        assert one.join() == Result.OK
        assert one.line().epoch == one.terms.epoch
        assert one.wait_open().is_open


def test_epochs_of_the_last_broker_say_nothing_to_the_next(place: Isolated) -> None:
    """Each begins at random: what was on its way is old, but for one time in 131 072."""
    with Member(place.prepare(share=500).socket) as one:
        epochs = set[int]()
        for _ in range(3):
            one.join()
            one.wait_open()
            epochs.add(one.line().epoch)
            place.broker.kill()
            place.broker.start()
            assert one.resume() == Result.OK
        assert len(epochs) > 1
