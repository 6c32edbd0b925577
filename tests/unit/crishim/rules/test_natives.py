"""A card that kubelet gave to a container is not shared; where kubelet gave none, this costs no query."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partage_base.cri import CHECKPOINT
from partage_base.cri.device_uses import LOGS
from partage_crishim.decisions import Decision, Refuse
from partage_crishim.kubelet import CLAIMS
from unit.crishim.rules.allocations import CARD, OTHER_CARD, card, grant, inventory, pod
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

SHARE = pod("u-share")
NATIVE = Create(pod="native", uid="u-native", env=[("NVIDIA_VISIBLE_DEVICES", CARD)])
GIVEN = (
    f"partage: kubelet gave card {CARD} to a pod by itself, so it is not shared; kubelet tries again, and where this "
    "stays, delete the pod to move it"
)
UNKNOWN = (
    "partage: kubelet does not say which cards it gave away by itself, so none of them is shared now; kubelet tries "
    "again"
)


def admits(
    stage: Stage, *devices: str, pod: str = "native", container: str = "main", namespace: str = "default"
) -> None:
    """Give devices as kubelet does, before it creates anything of the pod."""
    record(stage, *devices, uid=f"u-{pod}", container=container)
    stage.resources.given[namespace, pod, container] = devices


def record(stage: Stage, *devices: str, uid: str = "u-native", container: str = "main") -> None:
    path = stage.root / CHECKPOINT
    entries: list[Any] = json.loads(path.read_text())["Data"]["PodDeviceEntries"] if path.exists() else []
    path.unlink(missing_ok=True)  # kubelet too writes a new file each time
    entry = {
        "PodUID": uid,
        "ContainerName": container,
        "ResourceName": "nvidia.com/gpu",
        "DeviceIDs": {"0": [*devices]},
        "AllocResp": "",
    }
    stage.write_checkpoint({"Data": {"PodDeviceEntries": [*entries, entry], "RegisteredDevices": {}}, "Checksum": 1})


def has_logs(stage: Stage, name: str) -> None:
    (stage.root / LOGS / name).mkdir(parents=True)


@pytest.fixture(autouse=True)
def _folder_of_logs(stage: Stage) -> None:
    (stage.root / LOGS).mkdir(parents=True)


@pytest.mark.parametrize("device", [CARD, f"{CARD}::2", f"nvidia.com/gpu={CARD}", f"{CARD}-0"])
def test_a_card_in_native_hands_is_not_shared_whatever_the_inventory_still_says(
    device: str, stage: Stage, crishim: Crishim
) -> None:
    crishim.rewrite(pod("u2"))
    admits(stage, device)
    assert crishim.refusal(SHARE) == GIVEN
    crishim.rewrite(pod("u3", grant(OTHER_CARD)))


def test_the_native_container_is_refused_where_the_share_was_first(stage: Stage, crishim: Crishim) -> None:
    natives: list[Decision] = []

    async def kubelet_comes() -> None:
        admits(stage, CARD)
        natives.append(await crishim.decided(NATIVE))

    stage.fake.meanwhile = kubelet_comes  # after the share has last checked kubelet's devices
    crishim.held_back(SHARE)
    assert [type(each) for each in natives] == [Refuse]


def test_a_share_that_comes_second_leaves_no_reservation_behind(stage: Stage, crishim: Crishim) -> None:
    admits(stage, CARD)
    assert crishim.refusal(SHARE) == GIVEN
    crishim.passes(NATIVE)


def test_kubelet_is_asked_once_for_each_change_of_what_it_gave(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(SHARE)
    assert stage.resources.asked == 0
    admits(stage, OTHER_CARD)
    for uid in ("a", "b", "c"):
        crishim.rewrite(pod(uid, grant(share=10)))
    assert stage.resources.asked == 1


def test_a_card_that_was_given_back_is_shared_though_the_record_still_has_it(stage: Stage, crishim: Crishim) -> None:
    admits(stage, CARD)
    has_logs(stage, "default_native_u-native")
    assert crishim.refusal(SHARE) == GIVEN
    stage.resources.given.clear()
    crishim.rewrite(SHARE)


def test_an_init_container_holds_its_card_while_its_pod_lives(stage: Stage, crishim: Crishim) -> None:
    record(stage, CARD, container="prepare")
    has_logs(stage, "default_native_u-native")
    stage.resources.given["default", "native", "main"] = ()
    assert crishim.refusal(SHARE) == GIVEN


def test_an_instance_is_not_shared_while_kubelet_gave_the_whole_card_and_the_reverse(stage: Stage) -> None:
    stage.write_inventory(inventory(card(CARD, 0), card("MIG-1", 1, parent=CARD, mig="1g.10gb")))
    of_instance = pod("u2", grant("MIG-1"))
    admits(stage, CARD)
    assert "kubelet gave card MIG-1" in stage.crishim().refusal(of_instance)
    stage.resources.given.clear()
    (stage.root / CHECKPOINT).unlink()
    admits(stage, "MIG-1")
    assert "kubelet gave card GPU-" in stage.crishim().refusal(SHARE)


def test_a_dra_driver_names_cards_as_only_it_knows_so_they_are_all_its_own(stage: Stage, crishim: Crishim) -> None:
    (stage.root / CLAIMS).parent.mkdir(parents=True)
    (stage.root / CLAIMS).write_text("{}")
    crishim.rewrite(SHARE)
    stage.resources.resource = "gpu.nvidia.com"
    stage.resources.given["default", "native", "main"] = ("k8s.gpu.nvidia.com/claim=0c1-gpu-0",)
    (stage.root / CLAIMS).write_text("{ }")
    assert crishim.refusal(SHARE) == GIVEN


class TestWhereKubeletDoesNotSay:
    """Shares fail closed; nothing else fails."""

    def test_shares_are_refused_and_native_containers_are_not(self, stage: Stage, crishim: Crishim) -> None:
        admits(stage, OTHER_CARD)
        stage.resources.away = True
        assert crishim.refusal(SHARE) == UNKNOWN
        crishim.passes(Create(pod="native", uid="u-native", env=[("NVIDIA_VISIBLE_DEVICES", OTHER_CARD)]))

    def test_its_record_still_keeps_native_containers_from_cards_with_grants(
        self, stage: Stage, crishim: Crishim
    ) -> None:
        crishim.rewrite(SHARE)
        admits(stage, CARD)
        stage.resources.away = True
        assert "which carries grants" in crishim.refusal(NATIVE)

    def test_a_record_that_can_not_be_understood_leaves_it_to_kubelets_word(
        self, stage: Stage, crishim: Crishim
    ) -> None:
        stage.write_checkpoint([])
        crishim.rewrite(SHARE)
        stage.resources.given["default", "native", "main"] = (CARD,)
        stage.write_checkpoint([1])
        assert crishim.refusal(SHARE) == GIVEN


class TestAReservation:
    """A pod of ours took the card from kubelet."""

    @pytest.fixture(autouse=True)
    def _reserved(self, stage: Stage) -> None:
        stage.write_inventory(
            inventory(card(CARD, 0, reservation="partage-system/reservation-1"), card(OTHER_CARD, 1, pool="kubelet"))
        )
        admits(stage, CARD, pod="reservation-1", namespace="partage-system")

    def test_its_card_is_shared(self, crishim: Crishim) -> None:
        crishim.rewrite(SHARE)

    def test_its_own_container_starts_again_beside_the_shares(self, crishim: Crishim) -> None:
        crishim.rewrite(SHARE)
        own = Create(namespace="partage-system", pod="reservation-1", uid="u-r", env=[("NVIDIA_VISIBLE_DEVICES", CARD)])
        crishim.passes(own)
        assert "which carries grants" in crishim.refusal(NATIVE_OF_THAT_NAME)

    def test_a_pod_of_its_name_elsewhere_is_none(self, stage: Stage, crishim: Crishim) -> None:
        admits(stage, f"{CARD}::1", pod="reservation-1", namespace="default")
        assert crishim.refusal(SHARE) == GIVEN

    def test_a_card_that_went_on_to_another_pod_is_not_shared(self, stage: Stage, crishim: Crishim) -> None:
        stage.resources.given.clear()
        admits(stage, CARD)
        assert crishim.refusal(SHARE) == GIVEN


NATIVE_OF_THAT_NAME = Create(namespace="default", pod="reservation-1", uid="u-x", cdi=[f"nvidia.com/gpu={CARD}"])
