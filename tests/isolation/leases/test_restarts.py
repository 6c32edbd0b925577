"""The broker may die at any moment: leases run out by themselves, and the next one serves whoever joins."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import pytest

from isolation.leases.flood import Flooder
from isolation.leases.members import Member
from partage_isolation.leases.line import LineState
from partage_isolation.wire.packets import Result
from support.isolated import Isolated, open_files, until

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


def test_who_joined_before_has_to_join_again(place: Isolated) -> None:
    with Member(place.prepare(share=500).socket) as one:
        one.join()
        place.broker.kill()
        place.broker.start()
        assert one.resume() == Result.OK
        before = one.line()
        one.want()
        assert one.client.lend(0)
        assert one.line() == before
        assert one.join() == Result.OK
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


@pytest.mark.timeout(300)
def test_killed_again_and_again_under_load_everybody_gets_turns_again(place: Isolated) -> None:
    chance = random.Random(9)  # noqa: S311  chooses moments
    some = [place.prepare(share=share) for share in (200, 300, 500)]
    with ExitStack() as stack:
        running = [stack.enter_context(Flooder(container, "forever")) for container in some]
        for each in running:
            each.more_turns(2)
        before = open_files(place.broker.pid)
        for _ in range(6):
            time.sleep(chance.random() * 0.1)
            place.broker.kill()
            place.broker.start()
            for each in running:
                each.more_turns(1)
        for each in running:
            each.more_turns(3)
        assert abs(open_files(place.broker.pid) - before) <= 6
