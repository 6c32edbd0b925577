"""Containers with grants start with exactly their devices, from our plugin and from a third party's."""

from __future__ import annotations

import pytest

from partage_plugins.api import GPU, ContainerName, PodUid
from partage_plugins.api.keys import CONTAINER
from partage_plugins.codecs import container_key, decode_container
from rig.client.manifests import a_container
from rig.client.pods import Pod
from support.crishim_stage import Stage, whole
from unit.gpu_node.nodes import FIRST, SECOND

CONTROL = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}


def nodes(pod: Pod, container: str = "main") -> set[str]:
    return set(pod.exec("sh", "-c", "cd /dev; ls -d nvidia* || true", container=container).split())


def test_a_container_has_its_card_and_no_other_and_its_request_says_no_more(stage: Stage) -> None:
    """The additions are one specification, one variable and one annotation."""
    plain, pod = stage.idle_pod(), stage.granted_pod(whole(FIRST))
    for each in (plain, pod):
        each.wait_running()
    assert nodes(pod) == {"nvidia1", *CONTROL}
    assert pod.exec("sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES") == "void\n"
    without, with_card = stage.created_as(plain), stage.created_as(pod)
    assert with_card["CDI_devices"] == [{"name": f"partage.dev/gpu={FIRST}"}]
    added = {each["key"] for each in with_card["envs"]} - {each["key"] for each in without["envs"]}
    assert added == {"NVIDIA_VISIBLE_DEVICES"}
    assert set(with_card["annotations"]) - set(without["annotations"]) == {CONTAINER}
    record = decode_container(with_card["annotations"][CONTAINER], (GPU,))
    assert record.key == container_key(PodUid(pod.uid), ContainerName("main"), 0)
    assert (record.gen, record.of(GPU)) == (1, (whole(FIRST),))


def test_containers_of_a_pod_have_each_what_it_was_granted(stage: Stage) -> None:
    three = [a_container(name, image="busybox", command=["sleep", "600"]) for name in ("one", "two", "none")]
    pod = stage.pod_with({"one": {"gpu": (whole(FIRST),)}, "two": {"gpu": (whole(SECOND),)}}, containers=three)
    pod.wait_running()
    assert nodes(pod, "one") == {"nvidia1", *CONTROL}
    assert nodes(pod, "two") == {"nvidia0", *CONTROL}
    assert nodes(pod, "none") == set()


def test_an_init_container_leaves_its_card_to_the_next(stage: Stage) -> None:
    looks = a_container("look", image="busybox", command=["ls", "/dev/nvidia1"])
    pod = stage.pod_with({name: {"gpu": (whole(FIRST),)} for name in ("look", "main")}, init_containers=[looks])
    pod.wait_running()
    assert pod.logs("look") == "/dev/nvidia1\n"


def test_a_restarted_container_has_its_card_again(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), restart="Always").wait_running()
    stage.kill_container(pod)
    pod.wait_running()
    assert pod.container()["restartCount"] == 1
    assert nodes(pod) == {"nvidia1", *CONTROL}


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_a_card_that_came_back_before_a_restart_is_free_after_it(stage: Stage) -> None:
    """Only the crishim that ends knows that the create is over; what it leaves behind must not hold the card."""
    pod = stage.granted_pod(whole(FIRST)).wait_running()
    pod.delete_and_wait()
    stage.replace()
    stage.granted_pod(whole(FIRST)).wait_running()


def test_another_kind_of_device_comes_by_its_own_plugin(stage: Stage) -> None:
    pod = stage.pod_with({"main": {"fpga": [{"board": "fpga0"}], "gpu": (whole(SECOND),)}}).wait_running()
    assert pod.exec("sh", "-c", "echo $FPGA_BOARDS; ls /dev/fpga0") == "fpga0\n/dev/fpga0\n"
    assert nodes(pod) == {"nvidia0", *CONTROL}
    devices = {each["container_path"] for each in stage.created_as(pod)["devices"]}
    assert devices == {"/dev/fpga0"}


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_a_card_comes_by_hand_where_the_runtime_knows_no_specifications(stage: Stage) -> None:
    stage.replace(env={"PARTAGE_GPU_ATTACH": "raw"})
    pod = stage.granted_pod(whole(SECOND)).wait_running()
    assert nodes(pod) == {"nvidia0", *CONTROL}
