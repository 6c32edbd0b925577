"""Several cards: each has its gate, and a process requests only those that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolation.gates.stage import A_WHILE_S, Program, gated
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Program]:
    """A program with contexts on both of its cards."""
    with gated(tmp_path, cards=2) as place, place.program(cards=2) as started:
        yield started


def test_each_card_is_joined_when_it_is_used(two: Program) -> None:
    two.place.broker.generous = True
    two.ask("launch()")
    assert two.place.broker.joined == [(two.pid, 0)]
    two.ask("use(1)")
    two.ask("launch()")
    assert two.place.broker.joined == [(two.pid, 0), (two.pid, 1)]


def test_a_closed_gate_is_one_card_s(two: Program) -> None:
    broker = two.place.broker
    two.say("launch()")
    broker.wait_for(What.WANT, 0, card=0)
    broker.sole(0)
    two.answer()
    two.ask("launches(10)")
    two.ask("use(1)")
    two.say("launch()")
    broker.wait_for(What.WANT, 0, card=1)
    assert not two.has_answered(within_s=A_WHILE_S)
    broker.sole(1)
    two.answer()


def test_default_streams_are_the_current_card_s(two: Program) -> None:
    broker = two.place.broker
    broker.generous = True
    two.ask("launch(); use(1); launch(); use(0)")
    broker.generous = False
    broker.close(1)
    two.ask("launches(5)")
    two.ask("launches(5, PER_THREAD)")
    two.ask("use(1)")
    two.say("launch()")
    assert not two.has_answered(within_s=A_WHILE_S)
    broker.sole(1)
    two.answer()


def test_a_card_is_drained_for_itself(two: Program) -> None:
    broker = two.place.broker
    broker.generous = True
    two.ask("launch(); use(1); launch()")
    broker.generous = False
    two.ask("a, b = stream(), stream(0)")
    two.ask("launch(a, 3000)")
    broker.wait_for(What.DRAINED, broker.close(0), card=0)
    assert two.ask("is_busy(a)")
    broker.wait_for(What.DRAINED, broker.close(1), card=1)
    assert not two.ask("is_busy(a)")


def test_a_launch_on_both_cards_waits_for_both(two: Program) -> None:
    broker = two.place.broker
    two.say("launch_each(2)")
    broker.wait_for(What.WANT, 0, card=0)
    broker.sole(0)
    broker.wait_for(What.WANT, 0, card=1)
    assert not two.has_answered(within_s=A_WHILE_S)
    broker.sole(1)
    two.answer()


def test_free_cards_of_one_process_can_be_taken_back_one_by_one(two: Program) -> None:
    broker = two.place.broker
    two.say("launch()")
    broker.wait_for(What.WANT, 0, card=0)
    broker.free(0)
    broker.free(1)
    two.answer()
    two.ask("use(1); launches(100); use(0); launches(100)")
    broker.wait_for(What.DRAINED, broker.close(1), card=1)
    two.ask("launches(10)")
    two.ask("use(1)")
    two.say("launch()")
    assert not two.has_answered(within_s=A_WHILE_S)
    broker.free(1)
    two.answer()


def test_a_card_that_was_never_used_is_gated_when_it_is(tmp_path: Path) -> None:
    """Until its first use, launches on the other card, which is the program's own, pass unseen."""
    with gated(tmp_path, cards=2) as place, place.program(cards=1) as one:
        one.say("launch()")
        place.broker.wait_for(What.WANT, 0)
        place.broker.free(0)
        one.answer()
        one.ask("s = stream(); launches(20000, s, 0.001)")
        one.ask("_contexts.append(told('cuDevicePrimaryCtxRetain', 1))")
        one.ask("use(1)")
        one.say("launch()")
        place.broker.wait_for(What.WANT, 0, card=1)
        assert not one.has_answered(within_s=A_WHILE_S)
        place.broker.sole(1)
        one.answer()
