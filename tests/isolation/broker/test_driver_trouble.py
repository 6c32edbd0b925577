"""While the driver does not list a card's processes, no memory that may be held is lent; nobody waits for long."""

from __future__ import annotations

import pytest

from isolation.broker.workers import workers
from support.isolated import Contained, Isolated, until

pytestmark = pytest.mark.slow
MIB = 1 << 20


def test_a_question_at_the_limit_is_refused_though_nvml_hangs(place: Isolated, container: Contained) -> None:
    with workers(container, 1) as (one,):
        assert one.do("context()")
        assert one.do("take(800 << 20)")
        place.node.control("nvml hang")
        try:
            one.do("give()")
            assert not one.do("client.take(800 << 20)")
            assert one.do("client.take(100 << 20)")
        finally:
            place.node.control("nvml resume")
        until(lambda: one.do("client.take(700 << 20)"))


def test_what_the_dead_held_stays_charged_until_nvml_answers_again(place: Isolated, container: Contained) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("context()")
        assert one.do("take(800 << 20)")
        place.node.control("nvml hang")
        try:
            one.kill()
            until(
                lambda: any(
                    process.cards and process.cards[0].state == "dead" for process in container.told().processes
                )
            )
            assert not other.do("client.take(800 << 20)")
        finally:
            place.node.control("nvml resume")
        until(lambda: other.do("client.take(800 << 20)"))


def test_a_driver_that_went_away_frees_nothing_and_is_asked_again(place: Isolated, container: Contained) -> None:
    with workers(container, 1) as (one,):
        assert one.do("client.take(900 << 20)")
        one.do("client.give(900 << 20)")
        until(lambda: container.told().cards[0].charged_bytes == 0)
        place.node.kill()
        one.do("client.take(500 << 20)")
        one.do("client.give(500 << 20)")
        assert not one.do("client.take(700 << 20)")
        place.node.start()
        until(lambda: one.do("client.take(700 << 20)"))


@pytest.mark.parametrize("what", ["bytes", "lists"])
def test_on_a_blind_card_contexts_are_charged_the_dead_are_let_go_and_it_is_said(
    place: Isolated, container: Contained, what: str
) -> None:
    place.node.control(f"blind 0 {what}")
    with workers(container, 2) as (one, other):
        assert one.do("context()")
        assert one.do("client.take(450 << 20)")
        until(lambda: any("NVML does not tell" in sentence for sentence in place.told().findings))
        assert container.told().cards[0].overhead_bytes > 0
        assert not other.do("client.take(600 << 20)")
        one.kill()
        until(lambda: other.do("client.take(600 << 20)"))
