"""A shared card that kubelet allocated to another pod is reported, under any name by which kubelet knows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_gpu.discovery.device_plugin import Names, registered_in
from partage_gpu.discovery.known import KnownCards, seen
from unit.gpu_discovery.making import HANGS, MIG_A, MIG_B, ONE, TWO, MadeNode, gpu, instance, node_of, use

GIVEN = "degraded: kubelet gave it to pod ml/train (container main)"
OFFERED = "degraded: DRA driver gpu.nvidia.com hands it out, as its ResourceSlice says"
CUT = gpu(TWO, 1, minor=4, is_mig=True, instances=(instance(MIG_A), instance(MIG_B)))
NAMES = Names(seen(KnownCards(), node_of(gpu(ONE, 0, minor=7), CUT), reserve_bytes=0))
NVIDIA, DRA, OTHER = "nvidia.com/gpu", "gpu.nvidia.com", "example.com/fpga"
CLAIMED = use(f"partage.dev/gpu={ONE}", resource="gpu.partage.dev")
BOTH = {MIG_A, MIG_B}


@pytest.mark.parametrize(
    ("resource", "device", "cards"),
    [
        (NVIDIA, ONE, {ONE}),
        (NVIDIA, f"{ONE}::3", {ONE}),
        (OTHER, f"{ONE}-3", {ONE}),
        (NVIDIA, MIG_A, {MIG_A}),
        (NVIDIA, f"{MIG_A}::0", {MIG_A}),
        (NVIDIA, TWO, BOTH),
        (NVIDIA, f"MIG-{TWO}/1/0", BOTH),
        (NVIDIA, "0", {ONE}),
        (NVIDIA, "1", BOTH),
        (NVIDIA, "1:0", BOTH),
        (NVIDIA, "nvidia7", {ONE}),
        (NVIDIA, "nvidia4/gi1", BOTH),
        (NVIDIA, f"nvidia.com/gpu={ONE}", {ONE}),
        (NVIDIA, "nvidia.com/gpu=0", {ONE}),
        (NVIDIA, "nvidia.com/gpu=mig1:0", BOTH),
        (NVIDIA, "nvidia.com/gpu=all", {ONE, *BOTH}),
        (DRA, "gpu-7", {ONE}),
        (DRA, "gpu-4-mig-19-2-1", BOTH),
        (DRA, "k8s.gpu.nvidia.com/device=gpu-7", {ONE}),
        (DRA, "k8s.gpu.nvidia.com/claim=0a1b2c3d-0000-4000-8000-00000000abcd-gpu-7", {ONE}),
        (OTHER, "0", set()),
        (OTHER, "gpu-7", set()),
        (OTHER, "nvidia7", set()),
        (NVIDIA, "9", set()),
        (NVIDIA, "gpu-77", set()),
        (NVIDIA, f"{ONE}5", set()),
        ("evilnvidia.com/gpu", "0", set()),
        (NVIDIA, "", set()),
        ("", "", set()),
        (OTHER, "0000:18:00.0", {ONE}),
        (OTHER, "0000:18:00.01", set()),
    ],
)
def test_a_device_is_the_card_that_it_stands_for(resource: str, device: str, cards: set[str]) -> None:
    assert NAMES.cards_of(resource, device) == cards


@given(st.text(max_size=40), st.text(max_size=60) | st.from_regex(r"(nvidia|gpu-|mig)?[0-9:=/-]{0,20}"))
def test_any_name_stands_for_known_cards_or_none(resource: str, device: str) -> None:
    assert NAMES.cards_of(resource, device) <= {ONE, MIG_A, MIG_B}


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_none(content: bytes) -> None:
    registered = registered_in(content)
    assert registered is None or all(isinstance(ids, tuple) for ids in registered.values())


def test_a_card_of_ours_in_native_hands_is_told_until_it_is_given_back(node: MadeNode) -> None:
    assert node.health([use(ONE)]) == {ONE: GIVEN, TWO: "ok"}
    assert node.health([]) == {ONE: "ok", TWO: "ok"}


def test_a_card_that_was_given_back_while_nobody_looked_is_watched(node: MadeNode) -> None:
    node.look([use(ONE)])
    node.begin()
    assert node.health([]) == {ONE: "degraded: came back, being watched", TWO: "ok"}


def test_a_kubelet_that_cannot_be_asked_has_taken_nothing_back(node: MadeNode) -> None:
    node.look([use(ONE)])
    assert node.health(None)[ONE] == GIVEN


def test_of_several_pods_always_the_same_is_told(node: MadeNode) -> None:
    uses = [use(f"{ONE}::{n}", pod=pod) for n, pod in enumerate(("zoo", "train", "web"))]
    assert node.health(uses)[ONE] == node.health(uses[::-1])[ONE] == GIVEN


def test_a_pod_without_a_namespace_is_told_by_what_is_known_of_it(node: MadeNode) -> None:
    unknown = replace(use(ONE, pod="of uid 77"), namespace="")
    assert node.health([unknown])[ONE] == "degraded: kubelet gave it to pod of uid 77 (container main)"


def test_cards_that_are_kubelets_may_be_in_its_hands(node: MadeNode) -> None:
    node.registered(nvidia=[ONE, TWO])
    assert node.health([use(ONE)]) == {ONE: "ok", TWO: "ok"}


def test_a_card_for_claims_is_given_by_our_driver_and_by_nobody_else(node: MadeNode) -> None:
    """As if NVIDIA's plugin ran beside ours on a card that is ours."""
    node.settings = {"PARTAGE_GPU_DRA": "all"}
    node.begin()
    assert node.health([CLAIMED]) == {ONE: "ok", TWO: "ok"}
    assert node.health([CLAIMED, use(ONE)]) == {ONE: GIVEN, TWO: "ok"}


@pytest.mark.parametrize("settings", [{"PARTAGE_GPU_DRA": "all"}, {"PARTAGE_GPU_POOL": "all"}])
def test_a_card_that_another_dra_driver_offers_is_given_to_nobody_whatever_settings_say(
    node: MadeNode, settings: dict[str, str]
) -> None:
    node.settings = settings
    node.begin()
    offered = replace(use(ONE, resource=DRA, pod="", container=""), namespace="", is_offered=True)
    assert node.health([CLAIMED, offered] if "PARTAGE_GPU_DRA" in settings else [offered]) == {ONE: OFFERED, TWO: "ok"}
    assert node.health([]) == {ONE: "ok", TWO: "ok"}


def test_a_card_that_was_for_claims_is_shared_once_the_last_of_them_has_ended(node: MadeNode) -> None:
    assert node.health([CLAIMED]) == {ONE: GIVEN, TWO: "ok"}
    assert node.health([]) == {ONE: "ok", TWO: "ok"}


def test_what_is_wrong_with_the_card_itself_is_told_first(node: MadeNode) -> None:
    node.look([use(ONE)])
    node.driver.says = HANGS
    assert node.health([use(ONE)])[ONE].startswith("lost: ")


def test_very_long_names_fit(node: MadeNode) -> None:
    (health, _) = node.health([use(ONE, pod="p" * 400)]).values()
    assert health.endswith("…")


def test_devices_that_are_no_cards_are_passed_over(node: MadeNode) -> None:
    uses = [use("eth0", resource=OTHER), use("", resource=""), use("\x00" * 2000), use("GPU-unknown")]
    assert set(node.health(uses).values()) == {"ok"}
