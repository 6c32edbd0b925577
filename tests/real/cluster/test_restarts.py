"""Each component is killed and started again while pods run: the pods don't notice, and new ones start afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.machine.components import Component
from rig.rig import Rig
from support.extent import drawn

TEAM = "team-a"
COMPONENTS = ("kube-apiserver", "n1-containerd")


@pytest.fixture
def running(rig: Rig) -> Iterator[list[Pod]]:
    pods = [
        rig.cluster.pods.create(TEAM, a_pod(f"stays-{node}", image="busybox", command=["sleep", "600"], node=node))
        for node in rig.nodes
    ]
    for pod in pods:
        pod.wait_running()
    yield pods
    rig.cluster.pods.delete_made()


def component(rig: Rig, name: str) -> Component:
    return next(each for each in rig.components if each.name == name)


@pytest.mark.parametrize("name", drawn("real on one rig: components", COMPONENTS, 1))
def test_a_component_that_is_killed_and_started_again_costs_nothing(rig: Rig, running: list[Pod], name: str) -> None:
    killed = component(rig, name)
    before = killed.pid
    killed.kill()
    assert not killed.is_running
    killed.start()
    killed.wait_ready()
    assert killed.pid != before
    rig.control.wait_ready()
    for node in rig.nodes:
        rig.cluster.nodes.wait_ready(node)
    newcomer = rig.cluster.pods.create(TEAM, a_pod(f"after-{name}", image="busybox", command=["true"]))
    newcomer.wait_succeeded()
    for pod in running:
        pod.wait_running()
        assert pod.container()["restartCount"] == 0
        assert pod.exec("hostname") == f"{pod.name}\n"
