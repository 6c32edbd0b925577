"""The means of talking: every verb against the real server, and what becomes of a connection that breaks."""

from __future__ import annotations

import pytest

from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import PODS
from rig.client.wait import until
from rig.control.plane import ControlPlane
from rig.errors import ComponentFailed, NeverHappened
from rig.identity.people import TEAM

pytestmark = pytest.mark.slow


def test_a_restart_of_the_server_is_not_noticed(cluster: Cluster, control: ControlPlane) -> None:
    """Not even by a request that may not be sent twice: the broken connection is seen before it is used."""
    cluster.api.list(PODS.at())
    alice = cluster.as_user("alice")
    alice.pods.list(TEAM)
    control.apiserver.restart()
    assert cluster.api.get(PODS.at())["kind"] == "PodList"
    alice.pods.create(TEAM, a_pod("after", scheduler="nobody"))


def test_a_server_that_is_away_is_said_to_be(cluster: Cluster, control: ControlPlane) -> None:
    control.apiserver.kill()
    try:
        with pytest.raises(ComponentFailed, match=r"cannot reach https://.*refused; is it running\?"):
            cluster.api.list(PODS.at())
    finally:
        control.apiserver.start()
        control.apiserver.wait_ready()


def test_a_wait_in_vain_tells_what_was_seen(cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("waiting"))
    until("the scheduler has spoken", lambda: None if pod.events() else "it has not")
    with pytest.raises(NeverHappened) as never:
        pod.wait_running(within_s=1)
    told = str(never.value)
    assert "pod team-a/waiting runs: not within 1 s; last seen: phase Pending; node none" in told
    assert "Warning FailedScheduling (default-scheduler): no nodes available to schedule pods" in told
    assert "FailedScheduling" in [event.reason for event in cluster.events_of(pod)]


def test_a_pod_that_was_replaced_is_gone(cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("same", scheduler="nobody"))
    pod.delete(grace_s=0)
    namesake = cluster.pods.create(TEAM, a_pod("same", scheduler="nobody"))
    pod.delete_and_wait()
    assert namesake.refresh()["metadata"]["uid"] == namesake.uid
