"""People hear of what changed, once, in words that say what it means for their pods."""

from __future__ import annotations

import pytest

from partage_advertiser.telling import happenings
from partage_plugins.vocabulary.inventory import Inventory
from unit.advertiser.cards import A, B, card, inventory


def _told(before: Inventory | None, after: Inventory) -> list[tuple[str, str]]:
    return [(each.type, each.reason) for each in happenings(before, after)]


def test_a_start_with_healthy_cards_says_nothing() -> None:
    assert not happenings(None, inventory(card(), card(B, index=1)))


def test_the_same_again_says_nothing() -> None:
    broken = inventory(card(health="degraded: XID 48: double bit ECC error"))
    assert not happenings(broken, broken)


def test_a_start_with_a_broken_card_says_so() -> None:
    assert _told(None, inventory(card(health="lost"))) == [("Warning", "CardLost")]


def test_a_lost_card_is_told_with_its_reason_and_what_it_means() -> None:
    (told,) = happenings(inventory(card()), inventory(card(health="lost", lost_because="XID 79: off the bus")))
    assert told.message == f"Card 0 (NVIDIA L4, {A}) is lost: XID 79: off the bus. Pods that have it can't use it."


def test_another_reason_is_told_again() -> None:
    before, after = inventory(card(health="degraded: a")), inventory(card(health="degraded: b"))
    assert _told(before, after) == [("Warning", "CardDegraded")]


def test_a_card_that_works_again_is_told() -> None:
    assert _told(inventory(card(health="lost")), inventory(card())) == [("Normal", "CardRecovered")]


def test_cards_that_come_and_go_are_told() -> None:
    assert _told(inventory(card()), inventory(card(B))) == [("Normal", "CardFound"), ("Normal", "CardRemoved")]


def test_a_card_with_two_owners_is_told_with_what_to_do() -> None:
    health = "degraded: kubelet gave it to pod default/native (container main)"
    (told,) = happenings(inventory(card()), inventory(card(health=health)))
    assert (told.type, told.reason) == ("Warning", "CardGivenTwice")
    assert "default/native" in told.message
    assert "PARTAGE_GPU_POOL" in told.message


def test_a_card_that_changes_hands_is_told() -> None:
    assert _told(inventory(card()), inventory(card(pool="kubelet"))) == [("Normal", "CardPoolChanged")]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ((True, True), (False, True), [("Warning", "CrishimAway")]),
        ((True, True), (True, False), [("Warning", "BrokerAway")]),
        ((False, False), (True, True), [("Normal", "CrishimInForce"), ("Normal", "BrokerInForce")]),
    ],
)
def test_daemons_that_come_and_go_are_told(
    before: tuple[bool, bool], after: tuple[bool, bool], told: list[tuple[str, str]]
) -> None:
    first = inventory(card(), crishim=before[0], broker=before[1])
    assert _told(first, inventory(card(), crishim=after[0], broker=after[1])) == told


def test_a_node_without_cards_says_nothing() -> None:
    assert not happenings(None, Inventory(kinds={}))
    assert _told(inventory(card()), Inventory(ready=inventory().ready, kinds={})) == [("Normal", "CardRemoved")]
