"""Cards attached by hand: their own device nodes, the shared ones, and the driver's libraries."""

from __future__ import annotations

import os
import stat

import pytest

from partage_gpu.node.raw import EVERYTHING, capabilities_of
from partage_plugins import Refused
from unit.gpu_node.nodes import FIRST, MIG, SECOND, VERSION, MadeNode, devices, mounts, part, visible

TRIPLET = f"{os.uname().machine}-linux-gnu"
SHARED = {f"/dev/{name}" for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")}


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTAGE_GPU_ATTACH", "raw")


def test_a_container_gets_the_nodes_of_its_cards_and_of_no_other(node: MadeNode) -> None:
    given = devices(node.with_driver().adjusted(FIRST))
    assert set(given) == {"/dev/nvidia1"} | SHARED
    assert given["/dev/nvidia1"] == f"{node.root}/dev/nvidia1"


def test_several_cards_keep_the_order_of_the_grants(node: MadeNode) -> None:
    adjustment = node.with_driver().adjusted(SECOND, FIRST)
    assert list(devices(adjustment))[:2] == ["/dev/nvidia0", "/dev/nvidia1"]
    assert visible(adjustment) == "void"
    assert not adjustment.cdi


@pytest.mark.parametrize("folder", [f"/usr/lib/{TRIPLET}", "/usr/lib64"])
def test_libraries_are_where_every_c_library_looks_under_the_names_that_programs_load(
    node: MadeNode, folder: str
) -> None:
    given = mounts(node.with_driver().adjusted(FIRST))
    source = f"{node.root}/usr/lib/{TRIPLET}/libcuda.so.{VERSION}"
    assert {given[f"{folder}/{name}"] for name in ("libcuda.so", "libcuda.so.1", f"libcuda.so.{VERSION}")} == {source}
    assert f"{folder}/libnvidia-ml.so.1" in given


def test_nothing_is_writable_for_the_container(node: MadeNode) -> None:
    assert all(mount.readonly for mount in node.with_driver().adjusted(FIRST).mounts)


def test_the_socket_of_the_persistence_daemon_is_given_where_that_daemon_runs(node: MadeNode) -> None:
    path = "/run/nvidia-persistenced/socket"
    assert path not in mounts(node.with_driver().adjusted(FIRST))
    (node.root / path.lstrip("/")).parent.mkdir(parents=True)
    os.mknod(node.root / path.lstrip("/"), stat.S_IFSOCK | 0o666)
    assert mounts(node.adjusted(FIRST))[path] == f"{node.root}{path}"


def test_only_what_the_capabilities_name_is_mounted(node: MadeNode) -> None:
    env = (("NVIDIA_DRIVER_CAPABILITIES", b"all"), ("NVIDIA_DRIVER_CAPABILITIES", b"utility"))
    given = mounts(node.with_driver().adjusted(FIRST, env=env))
    assert "/usr/bin/nvidia-smi" in given
    assert not [path for path in given if "libcuda" in path or "libnvcuvid" in path]


def test_of_pod_setting_and_default_the_first_that_says_something_counts() -> None:
    assert capabilities_of("video", ("utility",)) == {"video"}
    assert capabilities_of("", ("utility",)) == {"utility"}
    assert capabilities_of(None, ()) == {"compute", "utility"}
    assert capabilities_of("all", ()) == EVERYTHING


@pytest.mark.parametrize("named", ["graphics", "compute,display", "cuda", "\ufffd"])
def test_a_capability_that_only_nvidias_tools_can_give_is_refused_by_name(named: str) -> None:
    with pytest.raises(
        Refused, match=r"can't be attached without NVIDIA's tools; allowed: compute, utility, video, all"
    ):
        capabilities_of(named, ())


def test_a_card_whose_node_nobody_knows_is_refused_rather_than_guessed(node: MadeNode) -> None:
    node.with_driver()
    (node.root / "proc/driver/nvidia/gpus/0000:18:00.0/information").unlink()
    with pytest.raises(Refused, match=f"no device node for card {FIRST} on this node; is the NVIDIA driver loaded"):
        node.adjusted(FIRST)
    assert "/dev/nvidia0" in devices(node.adjusted(SECOND))


def test_a_mig_instance_is_refused_with_the_ways_that_can(node: MadeNode) -> None:
    """Only NVML knows the minor numbers of instances on their card."""
    with pytest.raises(Refused, match=r"is a MIG instance.*nvidia-ctk cdi generate.*PARTAGE_GPU_ATTACH=nvidia-env"):
        node.with_driver().adjusted(MIG)


@pytest.mark.parametrize("missing", ["nvidiactl", "nvidia-uvm"])
def test_without_the_drivers_own_nodes_nothing_is_started(node: MadeNode, missing: str) -> None:
    (node.with_driver().root / "dev" / missing).unlink()
    with pytest.raises(Refused, match=f"/dev/{missing} is missing on this node; is the NVIDIA driver loaded there"):
        node.adjusted(FIRST)


def test_libraries_of_another_driver_are_not_mounted(node: MadeNode) -> None:
    """The driver was updated without reloading its modules, or the inventory is older than the driver."""
    with pytest.raises(Refused, match=r"libcuda.so.999.1 is not below .*; set PARTAGE_DRIVER_ROOT there"):
        node.with_driver().adjusted(FIRST, of=part(driver="999.1"))
