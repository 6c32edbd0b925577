"""On a node with cards: no variable, mount or annotation of a pod opens a card, and kubelet's own allocations stay."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rig.client.pods import Pod
from rig.machine.components import serving
from rig.nodes.node import Daemon
from support.crishim_stage import KUBELETS, NODE, PROGRAMS, Stage, whole
from unit.gpu_node.nodes import FIRST

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
MOUNTED = "/var/run/nvidia-container-devices"


def variables(stage: Stage, pod: Pod, name: str) -> list[str]:
    """Values as the runtime received them."""
    pod.wait_running()
    return [each.get("value", "") for each in stage.created_as(pod)["envs"] if each["key"] == name]


def test_a_variable_that_asks_for_cards_asks_for_none(stage: Stage) -> None:
    pod = stage.idle_pod(env={VISIBLE: "all"})
    assert variables(stage, pod, VISIBLE) == ["void"]
    assert pod.exec("sh", "-c", f"echo ${VISIBLE}") == "void\n"


def test_a_mount_that_stands_for_a_card_is_not_there(stage: Stage) -> None:
    mounts = [{"name": "own", "mountPath": path} for path in (f"{MOUNTED}all", f"{MOUNTED}/{FIRST}", "/data")]
    volumes = {"volumes": [{"name": "own", "hostPath": {"path": "/dev/null"}}]}
    pod = stage.idle_pod(env={VISIBLE: MOUNTED}, more={"volumeMounts": mounts}, spec=volumes)
    assert variables(stage, pod, VISIBLE) == ["void"]
    paths = {each["container_path"] for each in stage.created_as(pod)["mounts"]}
    assert "/data" in paths
    assert not any(path.startswith(MOUNTED) for path in paths)


def test_a_container_with_a_grant_gets_no_more_by_asking(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), env={VISIBLE: "all"})
    assert variables(stage, pod, VISIBLE) == ["void"]
    assert pod.exec("sh", "-c", "ls -d /dev/nvidia?") == "/dev/nvidia1\n"


@contextmanager
def device_plugin(stage: Stage, resource: str, card: str) -> Generator[None]:
    """Serve a card by another plugin, through kubelet's device manager."""
    argv = (sys.executable, "-P", str(PROGRAMS / "device_plugin.py"), resource, card)
    daemon = Daemon("device-plugin", argv, lambda _: _why_not_there(stage, resource), {"GRPC_ENABLE_FORK_SUPPORT": "0"})
    with serving(stage.node.daemon(daemon)):
        yield


def _why_not_there(stage: Stage, resource: str) -> str | None:
    found = stage.rig.cluster.nodes.allocatable(NODE, resource)
    return None if found == 1 else f"{resource} is {found}"


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
