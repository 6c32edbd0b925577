"""Which way of attaching is used; a container gets exactly the granted cards, for any request of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_gpu.node.attachment import (
    CARD_ID,
    attached,
    granted_cards,
    require_no_other_request,
    way_for,
)
from partage_gpu.node.settings import GpuSettings, Way
from partage_plugins import Refused
from partage_plugins.api import Device, Granted, Kind, Mount, Runtime, Security
from partage_plugins.testing.examples import container
from unit.gpu_node.nodes import CARDS, FIRST, MIG, MIG_CARD, SAMPLES, SECOND, MadeNode, card, granted, part, visible

VOID = {"NVIDIA_VISIBLE_DEVICES": "void"}
NVIDIA = Security(runtime_handler="nvidia")
AUTO = GpuSettings()
WITHOUT_HELP: tuple[Way, ...] = ("cdi", "nvidia-cdi", "nvidia-env")
TWISTED = st.one_of(st.sampled_from(["all", "none", "void", "0", FIRST, SECOND, MIG]), st.text(max_size=20))


@pytest.mark.parametrize("handler", ["nvidia", "nvidia-cdi", "nvidia-legacy"])
def test_where_nvidias_runtime_is_the_handler_it_is_told_by_environment(handler: str) -> None:
    assert way_for(container(security=Security(runtime_handler=handler)), AUTO) == "nvidia-env"


@pytest.mark.parametrize("handler", ["", "runc", "crun", "kata", "nvidia-something"])
def test_every_other_handler_gets_our_cdi_kind_where_the_runtime_takes_it(handler: str) -> None:
    assert way_for(container(security=Security(runtime_handler=handler)), AUTO) == "cdi"


@pytest.mark.parametrize("takes_cdi", [False, None])
@pytest.mark.parametrize(
    ("program", "way"),
    [
        ("/usr/bin/runc", "raw"),
        (None, "raw"),
        ("/opt/my-nvidia-container-runtime", "raw"),
        ("/usr/local/nvidia/toolkit/nvidia-container-runtime.cdi", "nvidia-env"),
    ],
)
def test_names_of_cdi_devices_are_not_given_to_a_runtime_that_does_not_say_that_it_takes_them(
    takes_cdi: bool | None,  # noqa: FBT001
    program: str | None,
    way: Way,
) -> None:
    assert way_for(container(runtime=Runtime(program=program, takes_cdi=takes_cdi)), AUTO) == way


@pytest.mark.parametrize("way", ["cdi", "nvidia-cdi", "nvidia-env", "raw"])
def test_a_way_that_is_set_goes_before_the_handler(way: Way) -> None:
    assert way_for(container(security=NVIDIA), GpuSettings(attach=way)) == way
    assert way_for(container(), GpuSettings(attach=way)) == way


def test_our_kind_names_the_cards_in_the_order_of_the_grants_and_silences_nvidias_runtime(node: MadeNode) -> None:
    node.write("etc/cdi/nvidia.yaml", (SAMPLES / "nvidia.yaml").read_text())
    adjustment = node.adjusted(SECOND, FIRST)
    assert adjustment.cdi == (f"partage.dev/gpu={SECOND}", f"partage.dev/gpu={FIRST}")
    assert adjustment.env == VOID
    assert not adjustment.devices
    assert not adjustment.mounts


def test_nvidias_names_need_no_file_of_ours(node: MadeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTAGE_GPU_ATTACH", "nvidia-cdi")
    adjustment = node.adjusted(MIG, FIRST)
    assert adjustment.cdi == (f"nvidia.com/gpu={MIG}", f"nvidia.com/gpu={FIRST}")
    assert adjustment.env == VOID
    assert not node.own_spec.exists()


def test_nvidias_runtime_is_told_the_cards_in_the_order_of_the_grants(node: MadeNode) -> None:
    adjustment = node.adjusted(SECOND, MIG, FIRST, security=NVIDIA)
    assert adjustment.env == {"NVIDIA_VISIBLE_DEVICES": f"{SECOND},{MIG},{FIRST}"}
    assert not adjustment.cdi
    assert not node.own_spec.exists()


def test_a_card_that_is_granted_twice_is_attached_once(node: MadeNode) -> None:
    assert visible(node.adjusted(SECOND, FIRST, SECOND, security=NVIDIA)) == f"{SECOND},{FIRST}"


@pytest.mark.parametrize("way", WITHOUT_HELP)
def test_attaching_enforces_nothing(way: Way) -> None:
    assert not attached(way, CARDS, container(), AUTO).enforces


@pytest.mark.parametrize("way", WITHOUT_HELP)
@given(env=st.lists(st.tuples(st.sampled_from(["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]), TWISTED)))
def test_what_the_container_asks_for_by_itself_changes_nothing(way: Way, env: list[tuple[str, str]]) -> None:
    asking = container(env=tuple((name, value.encode()) for name, value in env))
    assert attached(way, CARDS[:1], asking, AUTO) == attached(way, CARDS[:1], container(), AUTO)


@pytest.mark.parametrize(
    ("asking", "what"),
    [
        ({"annotations": {"nvidia.cdi.k8s.io/x": "nvidia.com/gpu=all"}}, "annotation nvidia.cdi.k8s.io/x of the pod"),
        ({"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}, "annotation cdi.k8s.io/x of the pod"),
        ({"env": (("NVIDIA_MIG_CONFIG_DEVICES", b"all"),)}, "variable NVIDIA_MIG_CONFIG_DEVICES"),
        ({"env": (("NVIDIA_MIG_MONITOR_DEVICES", b"all"),)}, "variable NVIDIA_MIG_MONITOR_DEVICES"),
    ],
)
def test_a_request_that_cannot_be_taken_back_is_refused(asking: dict[str, Any], what: str) -> None:
    with pytest.raises(Refused, match=f"partage: {what} asks for cards beside the container's grant; remove it"):
        require_no_other_request(container(**asking))


@pytest.mark.parametrize(
    "path",
    [
        "/var/run/nvidia-container-devices/all",
        "/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/all",
        "/var/run/nvidia-container-devicesall",  # NVIDIA's runtime compares string prefixes, not path components
        "//var/run/./x/../nvidia-container-devices/all",
    ],
)
def test_mounts_that_nvidias_runtime_reads_as_requests_are_refused(path: str) -> None:
    with pytest.raises(Refused, match="asks for cards beside"):
        require_no_other_request(container(mounts=(Mount(container_path=path, host_path="/dev/null"),)))


@pytest.mark.parametrize("path", ["/dev/nvidia7", "/dev//nvidia0", "/dev/nvidia-caps/nvidia-cap3"])
@pytest.mark.parametrize("side", ["host_path", "container_path"])
def test_device_nodes_of_cards_in_the_request_are_refused(path: str, side: str) -> None:
    device = replace(Device(host_path="/dev/zero", container_path="/dev/zero"), **{side: path})
    with pytest.raises(Refused, match="asks for cards beside"):
        require_no_other_request(container(devices=(device,)))


def test_what_names_no_card_is_left_alone() -> None:
    require_no_other_request(
        container(
            annotations={"example.com/cdi.k8s.io": "x"},
            mounts=(Mount(container_path="/var/run/nvidia", host_path="/x"),),
            devices=(Device(container_path="/dev/fuse", host_path="/dev/fuse"),),
            env=(("NVIDIA_VISIBLE_DEVICES", b"all"), ("NVIDIA_DRIVER_CAPABILITIES", b"all")),
        )
    )


def test_partage_adjust_refuses_what_asks_for_cards_by_itself(node: MadeNode) -> None:
    with pytest.raises(Refused, match="asks for cards beside"):
        node.adjusted(FIRST, security=NVIDIA, annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"})


def test_a_card_of_no_inventory_is_refused() -> None:
    with pytest.raises(Refused, match="card GPU-0 is not on this node; was it taken out"):
        granted_cards(granted("GPU-0"))
    with pytest.raises(Refused, match="is not on this node"):
        granted_cards(Granted(gen=1, grants=granted(FIRST).grants))


@pytest.mark.parametrize("name", ["all", "none", "void", "0", "0:1", "GPU-a/../b", "GPU-", "GPU-a-", "MIG-GPU-a/1/0"])
def test_an_id_that_means_something_else_to_a_runtime_is_refused_even_from_the_inventory(name: str) -> None:
    with pytest.raises(Refused, match="cannot be attached; allowed: an id such as GPU-… or MIG-…"):
        granted_cards(granted(name, of=part(card(name, 0, "0000:18:00.0"))))


@given(st.from_regex(CARD_ID, fullmatch=True))
def test_an_id_that_is_attached_can_stand_in_every_name(name: str) -> None:
    assert not set(name) & set(",=/:. \n")
    assert name[-1].isalnum()  # CDI requires it


def test_a_container_without_cards_is_left_alone(node: MadeNode) -> None:
    assert node.plugin().partage_adjust(container(), Granted(gen=1, grants={Kind("fpga"): ()})) is None


def test_capabilities_are_left_to_pod_and_image_unless_they_are_set() -> None:
    assert set(attached("nvidia-env", CARDS, container(), AUTO).env) == {"NVIDIA_VISIBLE_DEVICES"}


def test_capabilities_that_are_set_go_to_containers_that_name_none() -> None:
    settings = GpuSettings(capabilities=("compute", "video"))
    assert attached("nvidia-env", CARDS, container(), settings).env["NVIDIA_DRIVER_CAPABILITIES"] == "compute,video"


@pytest.mark.parametrize("own", [b"graphics", b"", b"\xff"])
def test_the_capabilities_that_a_pod_names_are_kept(own: bytes) -> None:
    named = container(env=(("NVIDIA_DRIVER_CAPABILITIES", own),))
    env = attached("nvidia-env", (MIG_CARD,), named, GpuSettings(capabilities=("compute",))).env
    assert "NVIDIA_DRIVER_CAPABILITIES" not in env
