"""Partage is uninstalled from a node of a cluster: pods with cards leave as budgets allow, others notice nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.api import Allocation, ContainerName, NodeName, PodUid
from partage_plugins.api.keys import INVENTORY
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import Resource
from support.extent import drawn
from support.switch_faults import a_running_pod, require_containerd
from support.switch_stage import NODE, SwitchStage, files_of

DIES_AFTER = (
    "journal.begin uninstall",
    "journal.forget confirm",
    "journal.forget endpoint",
    "journal.forget arm",
    "journal.forget save",
    "journal.forget units",
    "journal.forget unpack",
    "journal.forget look",
    "journal.take_version",
    "uninstall._end_daemons",
    "uninstall._remove_libraries",
    "uninstall._write_last_act",
)
"""Each run gets this far, the next one further."""
STARTS_PODS_AFTER = {"journal.begin uninstall", "journal.forget endpoint", "journal.forget units"}
"""Points at which kubelet's dependencies have changed since the previous point."""
BUDGETS = Resource("policy/v1", "poddisruptionbudgets")


@pytest.fixture
def stage(stage: SwitchStage) -> Iterator[SwitchStage]:
    yield stage
    stage.install()


def a_pod_with_cards(stage: SwitchStage) -> Pod:
    """Bound with an allocation while kubelet speaks to containerd, which reads none."""
    wished = a_pod("holder", image="busybox", command=["sleep", "99999"], scheduler="nobody")
    pod = stage.rig.cluster.pods.create("team-a", wished)
    nothing = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers={ContainerName("main"): {}})
    stage.rig.cluster.bind(pod, NODE, nothing, signed_by=stage.key)
    pod.wait_running()
    return pod


def test_nothing_is_left_of_it_once_the_pods_with_cards_have_left_though_it_is_killed_after_each_step(
    stage: SwitchStage,
) -> None:
    holder = a_pod_with_cards(stage)
    _, command = a_running_pod(stage)
    processes = stage.processes(command)
    assert stage.node("switch-on").returncode == 0, stage.told()
    budget = {
        "metadata": {"name": "keep"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "holder"}}},
    }
    stage.rig.cluster.api.create(BUDGETS.at("team-a"), budget)

    refused = stage.node("uninstall", "--timeout", "3")
    assert refused.returncode == 1
    assert "team-a/holder (Cannot evict pod as it would violate the pod's disruption budget.)" in refused.stderr
    assert stage.status().in_force

    stage.rig.cluster.api.delete(BUDGETS.at("team-a", "keep"))
    stage.rig.cluster.nodes.annotate(NODE, {INVENTORY: "{}"})
    for point in drawn("real/installation: kills of an uninstallation", DIES_AFTER, 1):
        stage.killed_after(point, "uninstall")
        stage.wait_ready(f"the node is ready after {point}")
        assert stage.processes(command) == processes, point
        if point in STARTS_PODS_AFTER:
            a_running_pod(stage)[0].delete()
    done = stage.node("uninstall")
    assert done.returncode == 0, done.stderr + stage.told()
    holder.wait_gone()
    assert INVENTORY not in stage.rig.cluster.nodes.annotations(NODE)
    require_containerd(stage)
    assert stage.processes(command) == processes
    assert len(processes) == 1
    assert files_of(stage.machine) == stage.untouched
