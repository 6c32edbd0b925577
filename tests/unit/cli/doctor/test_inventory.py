"""The inventory's content, and other components that allocate its cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.inventory import CHECKPOINT, REGISTRY, inventory, native
from partage_cli.pauses import pause
from partage_plugins.api.gpu import Pool
from partage_plugins.api.health import CardHealth, HealthCause
from unit.cli.doctor.made import CARDS, FIRST, Made, only


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def plugin(made: Made, *devices: str, resource: str = "nvidia.com/gpu") -> Finding:
    data = {"PodDeviceEntries": None, "RegisteredDevices": {resource: devices}}
    made.write(CHECKPOINT, json.dumps({"Data": data, "Checksum": 1}))
    return only(native(made.node))


def test_cards_that_are_well_are_counted(made: Made) -> None:
    assert only(inventory(made.with_cards().node)).found == "2 cards, all ok"


def test_sick_cards_are_named_with_their_reasons(made: Made) -> None:
    lost = replace(CARDS[0], health="lost", lost_because="fell off the bus")
    finding = only(inventory(made.with_cards(lost, CARDS[1]).node))
    assert finding.status is Severity.WARNING
    assert finding.found == f"1 of 2 cards take no new pods: {FIRST} is lost: fell off the bus"


def test_a_file_that_is_missing_or_broken_is_wrong_and_says_where(made: Made) -> None:
    assert only(inventory(made.node)).status is Severity.WRONG
    made.write("run/partage/inventory.json", '{"v":1,"kinds":{"gpu":{"driver":7}}}')
    finding = only(inventory(made.node))
    assert finding.status is Severity.WRONG
    assert "$.kinds.gpu.driver" in finding.found


def test_a_pause_is_told_with_its_reason(made: Made) -> None:
    pause(made.root, "driver 580")
    assert only(inventory(made.with_cards().node)).found == "the cards rest: by-hand: driver 580"


def test_a_node_without_others_hands_out_its_own_cards(made: Made) -> None:
    assert only(native(made.with_cards().node)).status is Severity.OK


@pytest.mark.parametrize("device", [FIRST, f"{FIRST}::3"])
def test_a_card_in_two_hands_is_wrong_whatever_its_resource_is_called(made: Made, device: str) -> None:
    finding = plugin(made.with_cards(), device, resource="example.com/gpu")
    assert finding.status is Severity.WRONG
    assert finding.found == f"kubelet hands out cards that partage shares: example.com/gpu has {FIRST}"


def test_a_device_plugin_that_has_all_cards_leaves_none_to_share(made: Made) -> None:
    theirs = [replace(card, pool="kubelet") for card in CARDS]
    assert plugin(made.with_cards(*theirs), *[card.id for card in CARDS]).status is Severity.WARNING


def test_cards_may_be_divided_between_two(made: Made) -> None:
    assert plugin(made.with_cards(CARDS[0], replace(CARDS[1], pool="kubelet")), CARDS[1].id).status is Severity.OK


def test_a_card_that_was_reserved_is_in_one_hand_though_a_device_plugin_offers_it(made: Made) -> None:
    reserved = replace(CARDS[0], reservation="partage-cards/card-1")
    theirs = [card.id for card in CARDS]
    assert plugin(made.with_cards(reserved, replace(CARDS[1], pool="kubelet")), *theirs).status is Severity.OK


def test_a_device_plugin_that_went_away_is_none(made: Made) -> None:
    assert plugin(made.with_cards()).found == "only partage hands out cards"


def test_nvidias_dra_driver_may_be_beside_on_other_cards(made: Made) -> None:
    made.with_cards(CARDS[0], replace(CARDS[1], pool="kubelet")).write(f"{REGISTRY}/gpu.nvidia.com-reg.sock")
    finding = only(native(made.node))
    assert (finding.status, finding.found) == (
        Severity.OK,
        "NVIDIA's DRA driver is here, and no card is handed out by two",
    )


@pytest.mark.parametrize("pool", ["shared", "dra"])
def test_which_cards_of_ours_another_driver_hands_out_is_said(made: Made, pool: Pool) -> None:
    given = CardHealth.degraded(HealthCause.NATIVE, "DRA driver gpu.nvidia.com hands it out")
    finding = only(native(made.with_cards(replace(CARDS[0], pool=pool).being(given), CARDS[1]).node))
    assert finding.status is Severity.WRONG
    assert f"{FIRST} (degraded: DRA driver gpu.nvidia.com hands it out)" in finding.found
    assert "PARTAGE_GPU_DRA" in finding.advice


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"Data": {"RegisteredDevices": 3}}'])
def test_a_record_that_is_none_is_not_guessed_at(made: Made, text: str) -> None:
    made.write(CHECKPOINT, text)
    assert only(native(made.node)).status is Severity.UNKNOWN
