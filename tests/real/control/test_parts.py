"""Each part of the control plane dies and comes back by itself, and a control plane may lack parts."""

from __future__ import annotations

import pytest

from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.control.plane import ControlPlane
from rig.errors import ComponentFailed
from rig.identity.people import TEAM

pytestmark = pytest.mark.slow


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


def test_a_part_that_ended_is_not_started_again_behind_ones_back(control: ControlPlane) -> None:
    assert control.scheduler is not None
    control.scheduler.kill()
    with pytest.raises(ComponentFailed, match="kube-scheduler ended with status -9"):
        control.wait_ready()
    control.scheduler.start()
    control.wait_ready()
