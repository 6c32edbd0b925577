"""The pool of each card: shared unless set otherwise or allocated by kubelet, and never flapping."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from partage_gpu.discovery.device_plugin import HELD_FOR_S
from partage_gpu.discovery.node_files import CHECKPOINT, SOCKETS
from partage_plugins.api.node import DeviceUse
from unit.gpu_discovery.making import MIG_A, MIG_B, ONE, THREE, TWO, MadeNode, gpu, instance, node_of, use

SHARED, KUBELETS = {ONE: "shared", TWO: "shared"}, {ONE: "kubelet", TWO: "kubelet"}


def set_pool(node: MadeNode, pool: str) -> None:
    node.settings = {"PARTAGE_GPU_POOL": pool}
    node.begin()


@pytest.mark.parametrize("devices", [[ONE, TWO], [ONE], [f"{ONE}::0", f"{ONE}::1"], ["0"], []])
def test_where_nvidias_device_plugin_is_no_card_is_ours(node: MadeNode, devices: list[str]) -> None:
    node.registered(nvidia=devices)
    assert node.pools() == KUBELETS


def test_where_nvidias_dra_driver_is_no_card_is_ours(node: MadeNode) -> None:
    node.dra_driver()
    assert node.pools() == KUBELETS


def test_another_plugin_that_names_our_cards_counts(node: MadeNode) -> None:
    node.registered(other=[f"{TWO}-7"])
    assert node.pools() == KUBELETS


@pytest.mark.parametrize("devices", [["0", "1"], ["fpga-0"], ["nvidia0"], [], None, [f"{ONE}0"]])
def test_plugins_of_other_devices_do_not_count(node: MadeNode, devices: list[str] | None) -> None:
    node.registered(other=devices)
    node.write(f"{SOCKETS}/example.com-reg.sock", "")
    assert node.pools() == SHARED


def test_a_plugin_that_comes_takes_the_cards_at_once_and_gives_them_back_later(node: MadeNode) -> None:
    assert node.pools() == SHARED
    node.registered(nvidia=[ONE, TWO])
    assert node.pools() == KUBELETS
    node.registered(other=["x"])
    node.now_s += HELD_FOR_S - 6
    assert node.pools() == KUBELETS
    assert node.pools() == SHARED


def test_a_driver_that_restarts_loses_no_card(node: MadeNode) -> None:
    socket = node.dra_driver()
    for _ in range(3):
        assert node.pools() == KUBELETS
        socket.unlink()
        node.now_s += HELD_FOR_S - 10
        assert node.pools() == KUBELETS
        node.dra_driver()


@pytest.mark.parametrize("torn", ["", "{", '{"Data":', '{"Data":{"RegisteredDevices":[]}}', "[" * 100_000])
def test_a_record_that_cannot_be_understood_changes_nothing_however_long(node: MadeNode, torn: str) -> None:
    node.write(CHECKPOINT, torn)
    assert node.pools() == SHARED
    node.registered(nvidia=[ONE])
    assert node.pools() == KUBELETS
    node.write(CHECKPOINT, torn)
    for _ in range(3):
        node.now_s += HELD_FOR_S - 10
        assert node.pools() == KUBELETS


def test_a_new_start_waits_as_long_before_it_takes_cards(node: MadeNode) -> None:
    node.registered(nvidia=[ONE])
    assert node.pools() == KUBELETS
    (node.root / CHECKPOINT).unlink()
    node.begin()
    assert node.pools() == KUBELETS
    node.now_s += HELD_FOR_S
    assert node.pools() == SHARED


def test_all_and_none_are_as_they_say_whoever_is_there(node: MadeNode) -> None:
    node.registered(nvidia=[ONE])
    set_pool(node, "all")
    assert node.pools() == SHARED
    set_pool(node, "none")
    (node.root / CHECKPOINT).unlink()
    assert node.pools() == KUBELETS


@pytest.mark.parametrize(
    ("pool", "shared"),
    [
        ("1", {TWO}),
        ("0,1", {ONE, TWO}),
        (ONE, {ONE}),
        (f"{ONE[:10]}, 2", {ONE, THREE}),
        (ONE.lower().replace("gpu", "GPU"), {ONE}),
        ("model=*h100*", {ONE, TWO}),
        ("model=NVIDIA L4", {THREE}),
        ("model=*", {ONE, TWO, THREE}),
    ],
)
def test_a_list_names_cards_by_number_id_or_model(node: MadeNode, pool: str, shared: set[str]) -> None:
    node.driver.says = node_of(gpu(), gpu(TWO, 1), gpu(THREE, 2, model="NVIDIA L4"))
    set_pool(node, pool)
    assert {id_ for id_, whose in node.pools().items() if whose == "shared"} == shared


def test_a_lost_card_is_still_counted(node: MadeNode) -> None:
    set_pool(node, "1")
    node.look()
    node.driver.says = node_of(gpu(TWO, 0, pci="0000:19:00.0"))
    assert node.pools() == {ONE: "kubelet", TWO: "shared"}


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        ("7", "PARTAGE_GPU_POOL has 7, which chooses no card of this node"),
        ("GPU-77", "PARTAGE_GPU_POOL has GPU-77, which chooses no card of this node"),
        ("model=L4", "PARTAGE_GPU_POOL has model=L4, which chooses no card of this node"),
    ],
)
def test_an_entry_that_chooses_nothing_is_told_once(node: MadeNode, pool: str, said: str) -> None:
    set_pool(node, f"{pool},{ONE}")
    with capture_logs() as logs:
        assert node.pools() == {ONE: "shared", TWO: "kubelet"}
        node.look()
    assert [line["what"] for line in logs] == [said]


def test_the_beginning_of_several_ids_chooses_none_of_them(node: MadeNode) -> None:
    twin = f"{ONE[:-1]}f"
    node.driver.says = node_of(gpu(), gpu(twin, 1))
    set_pool(node, ONE[:12])
    with capture_logs() as logs:
        assert node.pools() == {ONE: "kubelet", twin: "kubelet"}
    said = f"PARTAGE_GPU_POOL has {ONE[:12]}, which could be any of 2 cards; write more of its id"
    assert [line["what"] for line in logs] == [said]


@pytest.mark.parametrize(
    ("dra", "theirs"), [("all", {ONE, TWO}), ("none", set()), ("1", {TWO}), ("model=*H100*", {ONE, TWO})]
)
def test_cards_for_dra_are_taken_from_ours(node: MadeNode, dra: str, theirs: set[str]) -> None:
    node.settings = {"PARTAGE_GPU_POOL": "0", "PARTAGE_GPU_DRA": dra}
    node.begin()
    assert node.pools() == {ONE: "shared", TWO: "kubelet"} | dict.fromkeys(theirs, "dra")


def test_a_card_for_dra_is_nobody_elses_where_a_device_plugin_is(node: MadeNode) -> None:
    node.registered(nvidia=[ONE])
    node.settings = {"PARTAGE_GPU_DRA": "1"}
    node.begin()
    found = node.look([reserving(TWO), use(TWO)])
    given = "degraded: kubelet gave it to pod ml/train (container main)"
    assert {card.id: (card.pool, card.health) for card in found} == {ONE: ("kubelet", "ok"), TWO: ("dra", given)}


def test_what_dra_has_is_never_found_out_but_said(node: MadeNode) -> None:
    node.settings = {"PARTAGE_GPU_DRA": "auto"}
    with pytest.raises(ValueError, match="PARTAGE_GPU_DRA has 'auto'; allowed: all, none, or a list"):
        node.begin()


@pytest.mark.parametrize(("pool", "shared"), [("0", {MIG_A, MIG_B}), (ONE, {MIG_A, MIG_B}), (MIG_B, {MIG_B})])
def test_a_gpu_stands_for_its_instances(node: MadeNode, pool: str, shared: set[str]) -> None:
    cut = gpu(is_mig=True, instances=(instance(MIG_A), instance(MIG_B)))
    node.driver.says = node_of(cut, gpu(TWO, 1))
    set_pool(node, pool)
    assert {id_ for id_, whose in node.pools().items() if whose == "shared"} == shared


def test_a_gpu_without_any_instance_is_counted(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(is_mig=True), gpu(TWO, 1))
    set_pool(node, "1")
    assert node.pools() == {TWO: "shared"}


class TestReservations:
    """On a node with a device plugin, a pod of ours may reserve a card from kubelet: ours until the pod ends."""

    @pytest.fixture(autouse=True)
    def _with_natives(self, node: MadeNode) -> None:
        node.registered(nvidia=[ONE, TWO])

    def cards(self, node: MadeNode, *in_use: DeviceUse) -> dict[str, tuple[str, str | None]]:
        return {card.id: (card.pool, card.reservation) for card in node.look(list(in_use))}

    def test_the_card_that_one_has_is_shared_and_says_by_whom(self, node: MadeNode) -> None:
        assert self.cards(node, reserving(TWO), use(ONE)) == {ONE: ("kubelet", None), TWO: ("shared", RESERVATION)}
        assert self.cards(node, use(ONE)) == {ONE: ("kubelet", None), TWO: ("kubelet", None)}
        assert node.found is not None
        assert node.found.reservable

    def test_while_kubelet_is_silent_and_after_a_new_start_it_stays(self, node: MadeNode) -> None:
        reserved = self.cards(node, reserving(TWO))
        assert {card.id: (card.pool, card.reservation) for card in node.look(None)} == reserved
        node.begin()
        assert {card.id: (card.pool, card.reservation) for card in node.look(None)} == reserved

    def test_a_pod_of_another_namespace_reserves_nothing(self, node: MadeNode) -> None:
        assert self.cards(node, use(TWO)) == {ONE: ("kubelet", None), TWO: ("kubelet", None)}

    def test_a_card_that_a_native_pod_has_too_takes_no_new_pods(self, node: MadeNode) -> None:
        health = node.health([reserving(f"{TWO}::0"), use(f"{TWO}::1")])
        assert health == {ONE: "ok", TWO: "degraded: kubelet gave it to pod ml/train (container main)"}

    def test_where_cards_are_split_by_a_list_none_changes_hands(self, node: MadeNode) -> None:
        set_pool(node, "0")
        assert self.cards(node, reserving(TWO)) == {ONE: ("shared", None), TWO: ("kubelet", RESERVATION)}
        assert node.found is not None
        assert not node.found.reservable


RESERVATION = "partage-cards/card-1"


def reserving(device: str) -> DeviceUse:
    return DeviceUse(
        resource="nvidia.com/gpu", device=device, namespace="partage-cards", pod="card-1", container="card"
    )
