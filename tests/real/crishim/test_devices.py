"""Containers with grants: they start with exactly their devices, by our plugin and by somebody else's."""

from __future__ import annotations

import json

import pytest

from partage_plugins.codecs import container_key, decode_container
from partage_plugins.vocabulary import GPU, Allocation, ContainerName, Kind, NodeName, PodUid
from partage_plugins.vocabulary.keys import CONTAINER
from rig.client.manifests import a_container
from rig.client.pods import Pod
from support.crishim_stage import NODE, Stage, half, whole
from unit.gpu_node.nodes import FIRST, SECOND

CONTROL = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}


def nodes(pod: Pod, container: str = "main") -> set[str]:
    return set(pod.exec("sh", "-c", "cd /dev; ls -d nvidia* || true", container=container).split())


def test_a_container_has_its_card_and_no_other(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST))
    pod.wait_running()
    assert nodes(pod) == {"nvidia1", *CONTROL}
    assert pod.exec("sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES") == "void\n"


def test_two_cards_of_one_container_are_both_there(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), whole(SECOND))
    pod.wait_running()
    assert nodes(pod) == {"nvidia0", "nvidia1", *CONTROL}


def test_containers_of_a_pod_have_each_what_it_was_granted(stage: Stage) -> None:
    pod = stage.unbound_pod(
        containers=[a_container(name, image="busybox", command=["sleep", "600"]) for name in ("one", "two", "none")]
    )
    grants = {ContainerName("one"): {GPU.name: (whole(FIRST),)}, ContainerName("two"): {GPU.name: (whole(SECOND),)}}
    mine = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers=grants)
    stage.rig.cluster.bind(pod, NODE, mine, signed_by=stage.key)
    pod.wait_running()
    assert nodes(pod, "one") == {"nvidia1", *CONTROL}
    assert nodes(pod, "two") == {"nvidia0", *CONTROL}
    assert nodes(pod, "none") == set()


def test_an_init_container_leaves_its_card_to_the_next(stage: Stage) -> None:
    looks = a_container("look", image="busybox", command=["ls", "/dev/nvidia1"])
    pod = stage.unbound_pod(init_containers=[looks])
    grants = {ContainerName(name): {GPU.name: (whole(FIRST),)} for name in ("look", "main")}
    mine = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers=grants)
    stage.rig.cluster.bind(pod, NODE, mine, signed_by=stage.key)
    pod.wait_running()
    assert pod.logs("look") == "/dev/nvidia1\n"


def test_the_container_carries_what_it_was_given_and_by_which_key(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST))
    pod.wait_running()
    record = decode_container(stage.created_as(pod)["annotations"][CONTAINER], (GPU,))
    assert record.key == container_key(PodUid(pod.uid), ContainerName("main"), 0)
    assert record.of(GPU) == (whole(FIRST),)


def test_a_restarted_container_has_its_card_again(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), restart="Always")
    pod.wait_running()
    stage.kill_container(pod)
    pod.wait_running()
    assert pod.container()["restartCount"] == 1
    assert nodes(pod) == {"nvidia1", *CONTROL}


def test_a_card_is_free_again_when_its_pod_is_gone(stage: Stage) -> None:
    for _ in range(2):
        pod = stage.granted_pod(whole(FIRST))
        pod.wait_running()
        pod.delete_and_wait()


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_a_card_that_came_back_before_a_restart_is_free_after_it(stage: Stage) -> None:
    """Only the crishim that ends knows that the create is over; what it leaves behind must not hold the card."""
    pod = stage.granted_pod(whole(FIRST))
    pod.wait_running()
    pod.delete_and_wait()
    stage.replace()
    stage.granted_pod(whole(FIRST)).wait_running()


def test_another_kind_of_device_comes_by_its_own_plugin(stage: Stage) -> None:
    pod = stage.unbound_pod()
    grants = {Kind("fpga"): [{"board": "fpga0"}], GPU.name: (whole(SECOND),)}
    mine = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers={ContainerName("main"): grants})
    stage.rig.cluster.bind(pod, NODE, mine, signed_by=stage.key)
    pod.wait_running()
    assert pod.exec("sh", "-c", "echo $FPGA_BOARDS; ls /dev/fpga0") == "fpga0\n/dev/fpga0\n"
    assert nodes(pod) == {"nvidia0", *CONTROL}
    devices = {each["container_path"] for each in stage.created_as(pod)["devices"]}
    assert devices == {"/dev/fpga0"}


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_parts_of_a_card_start_where_promises_are_advisory(stage: Stage) -> None:
    stage.replace("--enforce", "advisory")
    pods = [stage.granted_pod(half(FIRST)) for _ in range(2)]
    for pod in pods:
        pod.wait_running()
        assert nodes(pod) == {"nvidia1", *CONTROL}
    assert "not enough compute" in stage.refused(stage.granted_pod(half(FIRST)))


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_a_card_comes_by_hand_where_the_runtime_knows_no_specifications(stage: Stage) -> None:
    stage.replace(env={"PARTAGE_GPU_ATTACH": "raw"})
    pod = stage.granted_pod(whole(SECOND))
    pod.wait_running()
    assert nodes(pod) == {"nvidia0", *CONTROL}


def test_the_request_says_nothing_that_nobody_asked_for(stage: Stage) -> None:
    """What crishim adds is one specification, one variable and one annotation."""
    plain, mine = stage.idle_pod(), stage.granted_pod(whole(FIRST))
    plain.wait_running()
    mine.wait_running()
    without, with_card = stage.created_as(plain), stage.created_as(mine)
    assert with_card["CDI_devices"] == [{"name": f"partage.dev/gpu={FIRST}"}]
    added = {each["key"] for each in with_card["envs"]} - {each["key"] for each in without["envs"]}
    assert added == {"NVIDIA_VISIBLE_DEVICES"}
    assert set(with_card["annotations"]) - set(without["annotations"]) == {CONTAINER}
    assert json.loads(with_card["annotations"][CONTAINER])["gen"] == 1
