"""On a node with cards: no variable, mount or annotation of a pod opens one, and what kubelet gave is left as it is."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from rig.client.pods import Pod
from rig.nodes.node import Daemon
from support.crishim_stage import KUBELETS, NODE, PROGRAMS, TEAM, Stage, whole
from unit.gpu_node.nodes import FIRST

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
MOUNTED = "/var/run/nvidia-container-devices"


def variables(stage: Stage, pod: Pod, name: str) -> list[str]:
    """As the runtime got them."""
    pod.wait_running()
    return [each.get("value", "") for each in stage.created_as(pod)["envs"] if each["key"] == name]


@pytest.mark.parametrize(
    "asked", ["all", "0", "0,1", FIRST, KUBELETS, "nvidia.com/gpu=all", "none,all", MOUNTED, " all "]
)
def test_a_variable_that_asks_for_cards_asks_for_none(stage: Stage, asked: str) -> None:
    pod = stage.idle_pod(env={VISIBLE: asked})
    assert variables(stage, pod, VISIBLE) == ["void"]
    assert pod.exec("sh", "-c", f"echo ${VISIBLE}") == "void\n"


@pytest.mark.parametrize("asked", ["void", "none", ""])
def test_a_variable_that_asks_for_nothing_is_left_alone(stage: Stage, asked: str) -> None:
    assert variables(stage, stage.idle_pod(env={VISIBLE: asked}), VISIBLE) == [asked]


def test_every_one_of_several_values_is_replaced(stage: Stage) -> None:
    twice = {
        "env": [{"name": VISIBLE, "value": "all"}, {"name": "OTHER", "value": "x"}, {"name": VISIBLE, "value": "0"}]
    }
    found = variables(stage, stage.idle_pod(more=twice), VISIBLE)
    assert set(found) == {"void"}


def test_variables_that_open_the_configuration_of_cards_are_emptied(stage: Stage) -> None:
    names = ("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES")
    pod = stage.idle_pod(env=dict.fromkeys(names, "all"))
    for name in names:
        assert variables(stage, pod, name) == [""]


def test_a_mount_that_stands_for_a_card_is_not_there(stage: Stage) -> None:
    mounts = [{"name": "own", "mountPath": path} for path in (f"{MOUNTED}all", f"{MOUNTED}/{FIRST}", "/data")]
    volumes = {"volumes": [{"name": "own", "hostPath": {"path": "/dev/null"}}]}
    pod = stage.idle_pod(env={VISIBLE: MOUNTED}, more={"volumeMounts": mounts}, spec=volumes)
    assert variables(stage, pod, VISIBLE) == ["void"]
    paths = {each["container_path"] for each in stage.created_as(pod)["mounts"]}
    assert "/data" in paths
    assert not any(path.startswith(MOUNTED) for path in paths)


@pytest.mark.parametrize("name", ["nvidia.cdi.k8s.io/container.main", "nvidia.cdi.k8s.io/pod", "cdi.k8s.io/x"])
def test_an_annotation_that_names_cards_is_refused(stage: Stage, name: str) -> None:
    pod = stage.idle_pod(annotations={name: "nvidia.com/gpu=all"})
    assert stage.refused(pod) == (
        f"partage: annotation '{name}' of the pod asks for cards past every allocation; ask for "
        "partage.dev/ resources instead, or have the namespace trusted"
    )


def test_a_container_with_a_grant_gets_no_more_by_asking(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), env={VISIBLE: "all"})
    assert variables(stage, pod, VISIBLE) == ["void"]
    assert pod.exec("sh", "-c", "ls -d /dev/nvidia?") == "/dev/nvidia1\n"


@contextmanager
def device_plugin(stage: Stage, resource: str, card: str) -> Generator[None]:
    """Somebody else's plugin serves a card by kubelet's device manager."""
    argv = (sys.executable, "-P", str(PROGRAMS / "device_plugin.py"), resource, card)
    daemon = Daemon("device-plugin", argv, lambda _: _why_not_there(stage, resource), {"GRPC_ENABLE_FORK_SUPPORT": "0"})
    plugin = stage.node.daemon(daemon)
    plugin.start()
    try:
        plugin.wait_ready()
        yield
    finally:
        plugin.kill()


def _why_not_there(stage: Stage, resource: str) -> str | None:
    found = stage.rig.cluster.nodes.get(NODE)["status"]["allocatable"].get(resource)
    return None if found == "1" else f"{resource} is {found}"


def served(stage: Stage, resource: str) -> Pod:
    return stage.idle_pod("served", limits={resource: "1"})


def test_a_pod_that_kubelet_served_is_left_as_it_is(stage: Stage) -> None:
    with device_plugin(stage, "nvidia.com/gpu", KUBELETS):
        pod = served(stage, "nvidia.com/gpu")
        assert variables(stage, pod, VISIBLE) == [KUBELETS]
        thief = stage.idle_pod(env={VISIBLE: KUBELETS})
        assert variables(stage, thief, VISIBLE) == ["void"]


def test_a_pod_that_kubelet_gave_a_card_of_ours_is_refused(stage: Stage) -> None:
    with device_plugin(stage, "example.com/gpu", FIRST):
        stage.granted_pod(whole(FIRST)).wait_running()
        assert stage.refused(served(stage, "example.com/gpu")) == (
            f"partage: kubelet gave this container card {FIRST}, which carries grants of partage; reserve "
            "each card for one of both, and delete the pod to move it"
        )


@pytest.fixture
def trusting(stage: Stage) -> Iterator[Stage]:
    stage.replace("--trusted-namespaces", TEAM)
    yield stage
    stage.replace()


def test_a_trusted_namespace_may_ask_for_all(trusting: Stage) -> None:
    assert variables(trusting, trusting.idle_pod(env={VISIBLE: "all"}), VISIBLE) == ["all"]


@pytest.fixture
def alone(stage: Stage) -> Iterator[Stage]:
    """Kubelet cannot be asked, and NVIDIA's runtime runs whatever names no other."""
    stage.replace("--pod-resources", "/run/nobody.sock", "--nvidia-is-default")
    yield stage
    stage.replace()


def test_where_nobody_can_tell_the_answer_is_none_and_no_refusal(alone: Stage) -> None:
    with device_plugin(alone, "nvidia.com/gpu", KUBELETS):
        pod = alone.idle_pod(env={VISIBLE: "all"})
        assert variables(alone, pod, VISIBLE) == ["void"]


def test_an_image_cannot_ask_for_what_its_pod_does_not(alone: Stage) -> None:
    assert variables(alone, alone.idle_pod(), VISIBLE) == ["void"]
