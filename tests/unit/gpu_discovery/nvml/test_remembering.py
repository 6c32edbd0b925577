"""A card that does not report its identity keeps its known facts, and never takes another card's place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml.driver import with_known
from partage_gpu.nvml.facts import NodeFacts, SilentCard
from unit.gpu_discovery.nvml import made
from unit.gpu_discovery.nvml.made import card, node

LOST = SilentCard(index=0, fault="GPU is lost (15)")


def test_a_silent_card_is_the_one_that_had_its_number() -> None:
    before = node(card("a", 0), card("b", 1))
    found = with_known(node(card("b", 1), silent=(LOST,)), before)
    assert found == node(card("a", 0, fault=LOST.fault), card("b", 1))


def test_a_silent_card_that_says_its_uuid_is_that_one() -> None:
    before = node(card("a", 0), card("b", 1))
    silent = SilentCard(index=0, uuid="b", fault="x")
    found = with_known(node(card("a", 1), silent=(silent,)), before)
    assert [(one.uuid, one.index, one.fault) for one in found.cards] == [("b", 0, "x"), ("a", 1, None)]


def test_a_number_that_now_is_another_cards_names_nobody() -> None:
    before = node(card("a", 0), card("b", 1))
    found = with_known(node(card("a", 1), card("b", 2), silent=(LOST,)), before)
    assert found.silent == (LOST,)


def test_a_number_that_no_card_had_names_nobody() -> None:
    silent = SilentCard(index=5, fault="x")
    assert with_known(node(silent=(silent,)), node(card("a", 0))).silent == (silent,)


def test_one_card_is_not_two_silent_ones() -> None:
    by_uuid = SilentCard(index=1, uuid="a", fault="x")
    found = with_known(node(silent=(by_uuid, LOST)), node(card("a", 0)))
    assert [one.uuid for one in found.cards] == ["a"]
    assert found.silent == (LOST,)


def test_an_unknown_uuid_is_nobody_that_was_known() -> None:
    silent = SilentCard(index=0, uuid="new", fault="x")
    assert with_known(node(silent=(silent,)), node(card("a", 0))).silent == (silent,)


def test_at_first_nothing_is_known() -> None:
    now = node(silent=(LOST,))
    assert with_known(now, None) == now


def test_a_lost_card_stays_known_over_many_looks() -> None:
    facts = node(card("a", 0), card("b", 1))
    for _ in range(3):
        facts = with_known(node(card("b", 1), silent=(LOST,)), facts)
    assert [one.uuid for one in facts.cards] == ["a", "b"]


@given(made.NODES, st.none() | made.NODES)
def test_cards_that_answer_stay_as_they_are_and_none_is_told_twice(now: NodeFacts, before: NodeFacts | None) -> None:
    found = with_known(now, before)
    assert all(one in found.cards for one in now.cards)
    uuids = [one.uuid for one in found.cards]
    assert len(uuids) == len(set(uuids))
    assert len(found.cards) + len(found.silent) == len(now.cards) + len(now.silent)
