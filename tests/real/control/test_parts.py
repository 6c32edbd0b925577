"""Each part of the control plane dies and comes back by itself, and a control plane may lack parts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

import pytest

from rig.control.plane import ControlPlane
from rig.control.settings import FOR_BENCHMARKS, ControlSettings
from rig.errors import ComponentFailed, NeverHappened
from rig.identity.people import TEAM
from rig.talking.cluster import Cluster
from rig.talking.manifests import a_node, a_pod

pytestmark = pytest.mark.slow

Plane = Callable[[ControlSettings], AbstractContextManager[ControlPlane]]
SECOND_SCHEDULER: Final = ControlSettings(
    kube_scheduler_configuration={"profiles": [{"schedulerName": "second"}]},
    feature_gates={"CRIListStreaming": True},
)


@pytest.mark.parametrize("name", ["etcd", "apiserver", "controller_manager", "scheduler"])
def test_a_part_dies_alone_and_comes_back(control: ControlPlane, cluster: Cluster, name: str) -> None:
    pod = cluster.pods.create(TEAM, a_pod("before", scheduler="nobody"))
    part = getattr(control, name)
    before = {each.name: each.pid for each in control.components}
    part.restart()
    after = {each.name: each.pid for each in control.components}
    assert [each for each in before if after[each] != before[each]] == [part.name]
    control.wait_ready()
    assert pod.refresh()


def test_what_etcd_holds_outlives_everything(control: ControlPlane, cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("before", scheduler="nobody"))
    for component in control.components:
        component.kill()
    control.start()
    control.wait_ready()
    assert pod.refresh()


def test_pods_wait_for_a_scheduler_that_is_away(control: ControlPlane, cluster: Cluster) -> None:
    assert control.scheduler is not None
    cluster.nodes.create(a_node("n1"))
    control.scheduler.kill()
    pod = cluster.pods.create(TEAM, a_pod("patient"))
    with pytest.raises(NeverHappened):
        pod.wait_bound(within_s=1)
    control.scheduler.start()
    assert pod.wait_bound() == "n1"
    cluster.nodes.delete("n1")


def test_a_part_that_ended_is_not_started_again_behind_ones_back(control: ControlPlane) -> None:
    assert control.scheduler is not None
    control.scheduler.kill()
    with pytest.raises(ComponentFailed, match="kube-scheduler ended with status -9"):
        control.wait_ready()
    control.scheduler.start()
    control.wait_ready()


def test_a_control_plane_for_benchmarks_takes_nodes_and_pods(plane: Plane) -> None:
    """Without a controller-manager there are no service accounts, and no node would lose its taint."""
    with plane(FOR_BENCHMARKS) as control:
        assert [each.name for each in control.components] == ["etcd", "kube-apiserver"]
        cluster = Cluster(control)
        assert "taints" not in cluster.nodes.create(a_node("n1"))["spec"]
        assert cluster.pods.create(TEAM, a_pod("any")).phase == "Pending"
        cluster.close()


def test_kube_scheduler_takes_a_configuration_and_all_take_feature_gates(plane: Plane) -> None:
    with plane(SECOND_SCHEDULER) as control:
        cluster = Cluster(control)
        cluster.nodes.create(a_node("n1"))
        assert cluster.pods.create(TEAM, a_pod("theirs", scheduler="second")).wait_bound() == "n1"
        assert 'kubernetes_feature_enabled{name="CRIListStreaming",stage="ALPHA"} 1' in cluster.api.text("/metrics")
        cluster.close()
