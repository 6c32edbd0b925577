"""Pod features beside a card: user namespaces, an image volume, a resize in place, a checkpoint."""

from __future__ import annotations

from pathlib import Path

from rig.client import pod_status
from rig.client.api import Patch
from rig.client.pods import Pod
from rig.errors import ComponentFailed
from rig.nodes.containerd import SOCKET as CONTAINERD
from support.crishim import SOCKET
from support.crishim_stage import Stage, devices_in_dev, whole
from unit.gpu_node.nodes import FIRST

READS = "head -c 3 /dev/nvidia1 | od -An -tx1"
ZEROS = ["00"] * 3


def reads_its_card(pod: Pod) -> bool:
    """The simulated card is /dev/zero under another name."""
    return pod.exec("sh", "-c", READS).split() == ZEROS


def test_a_pod_with_users_of_its_own_has_its_card(stage: Stage) -> None:
    """Root in its user namespace is nobody on the node, and may make no device node."""
    with devices_in_dev(stage.machine):
        pod = stage.granted_pod(whole(FIRST), spec={"hostUsers": False}).wait_running()
    assert pod.exec("cat", "/proc/self/uid_map").split()[1] != "0"
    assert reads_its_card(pod)


def test_a_volume_that_is_an_image_is_there_beside_the_card(stage: Stage) -> None:
    mounts = {"volumeMounts": [{"name": "files", "mountPath": "/files", "readOnly": True}]}
    volumes = {"volumes": [{"name": "files", "image": {"reference": "glibc", "pullPolicy": "IfNotPresent"}}]}
    pod = stage.granted_pod(whole(FIRST), more=mounts, spec=volumes).wait_running()
    assert "dash" in pod.exec("ls", "/files/bin").split()
    assert reads_its_card(pod)


def test_a_pod_that_grows_in_place_keeps_its_card(stage: Stage) -> None:
    """UpdateContainerResources gives the same process more, and writes its cgroups, of devices too, again."""
    sizes = {"cpu": "100m", "memory": "32Mi"}
    pod = stage.granted_pod(whole(FIRST), requests=sizes, limits=sizes).wait_running()
    before = pod.container()["containerID"]
    larger = {"cpu": "200m", "memory": "64Mi"}
    wanted = {"spec": {"containers": [{"name": "main", "resources": {"requests": larger, "limits": larger}}]}}
    stage.rig.cluster.api.patch(pod.path("resize"), wanted, Patch.STRATEGIC)
    pod.wait(
        "is resized",
        lambda _: None if pod.container()["resources"]["limits"] == larger else pod_status.summary(pod.object),
    )
    assert (pod.container()["containerID"], pod.container()["restartCount"]) == (before, 0)
    limits = stage.crictl("inspect", before.partition("://")[2])
    assert '"cpuQuota": "20000"' in limits or '"cpu_quota": "20000"' in limits or '"cpu_quota": 20000' in limits
    assert reads_its_card(pod)


def checkpoint(stage: Stage, socket: str, container: str) -> str:
    """Result of a checkpoint: an archive, or the runtime's error, since it needs CRIU."""
    archive = f"/var/lib/partage/{Path(socket).stem}.tar"
    argv = (str(stage.rig.programs["crictl"]), "--runtime-endpoint", f"unix://{socket}", "checkpoint")
    try:
        stage.machine.run(*argv, f"--export={archive}", container)
    except ComponentFailed as no:
        return str(no).partition("desc = ")[2].splitlines()[0]  # the next line begins with the time
    return "an archive" if stage.machine.path(archive).stat().st_size else "an empty file"


def test_a_checkpoint_of_a_container_with_a_card_is_what_the_runtime_makes_of_it_and_the_container_runs_on(
    stage: Stage,
) -> None:
    pod = stage.granted_pod(whole(FIRST)).wait_running()
    container = pod.container()["containerID"].partition("://")[2]
    straight = checkpoint(stage, CONTAINERD, container)
    assert straight == "an archive" or "criu" in straight
    assert checkpoint(stage, SOCKET, container) == straight
    assert reads_its_card(pod)
