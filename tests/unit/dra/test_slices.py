"""Devices of DRA: the consumable capacity of each card, attributes for claims, and cards that take no pods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_dra.slices import LONGEST_ATTRIBUTE, PCI_ADDRESS, Capacity, Taint, devices_of
from partage_dra.sysfs import pcie_roots
from partage_plugins.api import CardId
from partage_plugins.api.claim_devices import device_name
from partage_plugins.api.names import CARD_ID_PATTERN
from unit.dra.making import GIB, A, B, card, part


def test_a_card_can_be_consumed_in_milli_and_in_mebibytes() -> None:
    (device,) = devices_of(part(card(memory_bytes=24 * GIB + 5)))
    assert device.name == "gpu-aaaaaaaa-0000-0000-0000-000000000000"
    assert device.capacity == {"share": Capacity(1000, 0, 1), "memory": Capacity(24 * GIB, 1 << 20, 1 << 20)}
    assert device.taints == ()


@pytest.mark.parametrize("pool", ["shared", "kubelet"])
def test_a_card_that_others_hand_out_is_no_device(pool: str) -> None:
    assert devices_of(part(card(pool=pool))) == ()


def test_claims_choose_by_what_the_card_is_and_where_it_lies() -> None:
    linked = part(
        card(numa_node=1, pcie_switch=4), card(B, index=1, mig_profile="1g.10gb", parent=A), links=((0, 2), (2, 0))
    )
    one, other = devices_of(linked)
    assert one.attributes == {
        "uuid": A,
        "model": "NVIDIA L4",
        "index": 0,
        "computeCapability": "8.9",
        "driver": "580.95.05",
        "cuda": "13.0",
        PCI_ADDRESS: "0000:01:00.0",
        "nvlinkGroup": 0,
        "pcieGroup": 0,
        "numaNode": 1,
    }
    assert (other.attributes["mig"], other.attributes["parent"]) == ("1g.10gb", A)
    assert (other.attributes["nvlinkGroup"], other.attributes["pcieGroup"]) == (0, 1)


def test_cards_match_devices_of_other_drivers_by_their_pcie_root(tmp_path: Path) -> None:
    devices = tmp_path / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    (devices / "0000:01:00.0").symlink_to("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0")
    (devices / "0000:02:00.0").symlink_to("../../../devices/platform/0000:02:00.0")
    some = part(card(), card(B, index=1, pci="0000:02:00.0"), card(CardId("GPU-c"), index=2, pci="../../etc"))
    roots = pcie_roots(tmp_path, [each.pci for each in some.cards])
    said = [each.attributes.get("resource.kubernetes.io/pcieRoot") for each in devices_of(some, roots=roots)]
    assert said == ["pci0000:00", None, None]


def test_groups_count_cards_that_are_no_devices_too() -> None:
    """So that a number means the same to every reader."""
    (device,) = devices_of(part(card(B, pool="shared"), card(index=1)))
    assert (device.attributes["nvlinkGroup"], device.attributes["pcieGroup"]) == (1, 1)


@pytest.mark.parametrize(
    ("health", "taint"),
    [
        ({"health": "degraded: too hot", "cause": "fault"}, Taint("fault", "NoSchedule")),
        ({"health": "degraded: as an older writer says it"}, Taint("degraded", "NoSchedule")),
        ({"health": "lost", "cause": "fell-off"}, Taint("fell-off", "NoExecute")),
    ],
)
def test_a_degraded_card_takes_no_new_pods_and_a_lost_one_keeps_none(health: dict[str, Any], taint: Taint) -> None:
    assert devices_of(part(card(**health)))[0].taints == (taint,)


def test_texts_are_no_longer_than_the_api_server_takes() -> None:
    (device,) = devices_of(part(card(model="M" * 128, pci="p" * 128)))
    texts = [each for each in device.attributes.values() if isinstance(each, str)]
    assert max(map(len, texts)) == LONGEST_ATTRIBUTE


@given(st.from_regex(CARD_ID_PATTERN, fullmatch=True))
def test_every_card_has_a_name_that_is_a_label(id_: str) -> None:
    name = device_name(CardId(id_))
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name)
    assert name == device_name(CardId(id_))


def test_ids_that_are_no_labels_have_names_of_their_own() -> None:
    names = {device_name(CardId(id_)) for id_ in (B, B.replace("/7/0", "/7/1"), "GPU_1", "GPU.1", "x" * 100)}
    assert len(names) == 5
