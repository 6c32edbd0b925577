"""The DaemonSet on real nodes: its pods run, and kubelet puts a token into each that identifies its node.

The program itself is tested elsewhere: here a shell replaces the image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from partage_plugins.api.keys import INVENTORY
from rig.client.cluster import Cluster
from rig.client.pods import Pod
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import ADVERTISER, OUR_NAMESPACE
from rig.identity.permissions import Manifest, delivered
from rig.rig import Rig
from support.cluster_stage import ClusterStage

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path


def stand_in() -> Manifest:
    (daemonset,) = delivered("advertiser/daemonset.yaml")
    (container,) = daemonset["spec"]["template"]["spec"]["containers"]
    container |= {"image": "busybox", "command": ["sleep", "3600"]}
    del container["livenessProbe"], container["readinessProbe"]
    daemonset["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    return daemonset


@pytest.fixture(scope="module")
def pods(lasting_stage: ClusterStage) -> Iterator[dict[str, Pod]]:
    """The DaemonSet's pods by node."""
    rig = lasting_stage.rig
    rig.cluster.kubectl.apply(json.dumps(stand_in()))
    until("every node has its pod", lambda: None if len(ours(rig.cluster)) == len(rig.nodes) else "not yet")
    running = ours(rig.cluster)
    for pod in running:
        pod.wait_running()
    yield {str(pod.node): pod for pod in running}
    rig.cluster.kubectl.run("delete", "daemonset", ADVERTISER.name, "-n", OUR_NAMESPACE)
    until("its pods are gone", lambda: "there are some" if ours(rig.cluster) else None)


def inside(pod: Pod, *command: str) -> str:
    return pod.exec(*command, container="advertiser")


def ours(cluster: Cluster) -> list[Pod]:
    return [pod for pod in cluster.pods.list(OUR_NAMESPACE) if pod.name.startswith(ADVERTISER.name)]


def test_it_runs_on_every_node_and_its_token_speaks_for_that_node_alone(rig: Rig, pods: dict[str, Pod]) -> None:
    assert pods.keys() == rig.nodes.keys()
    for node, pod in pods.items():
        advertiser = rig.cluster.with_token(ADVERTISER, inside(pod, "cat", TOKEN))
        advertiser.nodes.annotate(node, {INVENTORY: "{}"})
        advertiser.nodes.annotate(node, {INVENTORY: None})
        (other,) = pods.keys() - {node}
        with pytest.raises(Refused, match=f"the advertiser of node {node} may not change node {other}"):
            advertiser.nodes.annotate(other, {INVENTORY: "{}"})


def test_it_reaches_of_its_node_what_it_needs_and_leaves_no_trace(rig: Rig, pods: dict[str, Pod]) -> None:
    pod, machine = pods["n1"], rig.nodes["n1"].machine
    assert inside(pod, "sh", "-c", "echo $PARTAGE_NODE_NAME") == "n1\n"
    inside(pod, "touch", "/run/partage/written")
    assert machine.path("/run/partage/written").exists()
    inside(pod, "rm", "/run/partage/written")
    assert "kubelet.sock" in inside(pod, "ls", "/var/lib/kubelet/pod-resources")
    assert inside(pod, "cat", "/host/proc/1/comm")
    assert pod.tried("touch", "/etc/x", container="advertiser").status != 0
    assert pod.tried("touch", "/host/x", container="advertiser").status != 0
    assert not machine.path("/dev/termination-log").exists()


def test_what_is_mounted_on_the_node_later_is_seen(rig: Rig, pods: dict[str, Pod]) -> None:
    machine = rig.nodes["n1"].machine
    machine.run("sh", "-c", "mkdir -p /run/nvidia/driver && mount -t tmpfs driver /run/nvidia/driver")
    try:
        machine.run("touch", "/run/nvidia/driver/libnvidia-ml.so.1")
        assert inside(pods["n1"], "ls", "/host/run/nvidia/driver") == "libnvidia-ml.so.1\n"
    finally:
        machine.run("umount", "/run/nvidia/driver")
    assert inside(pods["n1"], "ls", "/host/run/nvidia/driver") == ""
