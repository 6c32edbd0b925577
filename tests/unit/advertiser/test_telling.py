"""People hear of each change once, with what it means for their pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_advertiser.condition_changes import condition_changes, of_crishim, of_guarded
from partage_base.condition import Fault, Guarded
from partage_plugins.api import Card, CardHealth, HealthCause, Ready
from partage_plugins.api.inventory import Inventory
from unit.advertiser.cards import A, B, card, inventory


def _told(before: Inventory | None, after: Inventory) -> list[tuple[str, str]]:
    return [(each.type, each.reason) for each in condition_changes(before, after)]


def test_a_start_with_healthy_cards_says_nothing() -> None:
    assert not condition_changes(None, inventory(card(), card(B, index=1)))


def test_the_same_again_says_nothing() -> None:
    broken = inventory(card(health="degraded: XID 48: double bit ECC error"))
    assert not condition_changes(broken, broken)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, card(health="lost"), [("Warning", "CardLost")]),
        (card(health="degraded: a"), card(health="degraded: b"), [("Warning", "CardDegraded")]),
        (card(health="lost"), card(), [("Normal", "CardRecovered")]),
        (card(), card(B), [("Normal", "CardFound"), ("Normal", "CardRemoved")]),
        (card(), card(pool="kubelet"), [("Normal", "CardPoolChanged")]),
    ],
)
def test_what_became_of_a_card_is_told(before: Card | None, after: Card, told: list[tuple[str, str]]) -> None:
    assert _told(inventory(before) if before else None, inventory(after)) == told


def test_a_lost_card_is_told_with_its_reason_and_what_it_means() -> None:
    (told,) = condition_changes(inventory(card()), inventory(card(health="lost", lost_because="XID 79: off the bus")))
    assert told.message == f"Card 0 (NVIDIA L4, {A}) is lost: XID 79: off the bus. Pods that have it can't use it."


def test_a_card_with_two_owners_is_told_with_what_to_do() -> None:
    health = CardHealth.degraded(HealthCause.NATIVE, "kubelet gave it to pod default/native (container main)")
    (told,) = condition_changes(inventory(card()), inventory(card().being(health)))
    assert (told.type, told.reason) == ("Warning", "CardGivenTwice")
    assert "default/native" in told.message
    assert "PARTAGE_GPU_POOL" in told.message


def test_a_health_that_only_begins_like_two_owners_is_told_as_it_is() -> None:
    health = CardHealth.degraded(HealthCause.OTHER, "kubelet gave it to pod a")
    for alike in (card().being(health), card(health=str(health))):
        assert _told(inventory(card()), inventory(alike)) == [("Warning", "CardDegraded")]


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
    assert not condition_changes(None, Inventory(kinds={}))
    assert _told(inventory(card()), Inventory(ready=inventory().ready, kinds={})) == [("Normal", "CardRemoved")]


def test_a_container_that_was_kept_from_cards_is_told_with_what_to_do() -> None:
    told = of_guarded(Guarded("monitoring", "exporter-x", "main"))
    assert (told.type, told.reason) == ("Warning", "ContainerGuarded")
    assert told.message.startswith("Container main of pod monitoring/exporter-x asked for cards that nobody gave it")
    assert "trusted_namespaces" in told.message


def test_what_crishim_finds_wrong_with_itself_is_told_by_its_cause_and_what_it_means() -> None:
    told = of_crishim(Fault("settings", "its settings cannot be read: no such key"))
    assert (told.type, told.reason) == ("Warning", "CrishimSettings")
    assert told.message == "crishim: its settings cannot be read: no such key; no shared pods come here."
    told = of_crishim(Fault("metrics", "cannot listen on :9401", refuses=False))
    assert (told.reason, told.message) == ("CrishimMetrics", "crishim: cannot listen on :9401.")


def test_why_crishim_is_not_in_force_is_told() -> None:
    why = "crishim honours no allocation: no key is there"
    after = replace(inventory(card(), crishim=False), ready=Ready(broker=True, why=why))
    (told,) = condition_changes(inventory(card()), after)
    assert told.message == f"No shared pods come here: {why}; partage doctor on the node says more."
