"""The means of talking: every verb against the real server, and what becomes of a connection that breaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.control.plane import ControlPlane
from rig.errors import ComponentFailed, NeverHappened, Refused, RigError
from rig.identity.people import TEAM
from rig.talking.api import Patch
from rig.talking.cluster import Cluster
from rig.talking.manifests import a_pod
from rig.talking.resources import CONFIG_MAPS, PODS, Json
from rig.talking.waiting import until
from rig.talking.watching import Change

pytestmark = pytest.mark.slow

MINE = CONFIG_MAPS.at(TEAM, "mine")


def a_config_map(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": TEAM}, "data": data}


@pytest.fixture
def mine(cluster: Cluster) -> Iterator[Json]:
    yield cluster.api.create(CONFIG_MAPS.at(TEAM), a_config_map(a="1", b="2"))
    cluster.api.delete(MINE)


def sockets() -> int:
    return sum(str(fd.readlink()).startswith("socket:") for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink())


def test_an_object_is_read_listed_replaced_and_deleted(cluster: Cluster, mine: Json) -> None:
    assert cluster.api.get(MINE)["data"] == {"a": "1", "b": "2"}
    assert "mine" in [each["metadata"]["name"] for each in cluster.api.list(CONFIG_MAPS.at(TEAM))]
    replaced = cluster.api.replace(MINE, {**mine, "data": {"a": "3"}})
    assert replaced["data"] == {"a": "3"}
    with pytest.raises(Refused) as refused:
        cluster.api.replace(MINE, mine)
    assert refused.value.reason == "Conflict"


def test_each_kind_of_patch_changes_what_it_says(cluster: Cluster, mine: Json) -> None:
    api = cluster.api
    assert api.patch(MINE, {"data": {"a": None}})["data"] == {"b": "2"}
    assert api.patch(MINE, {"data": {"c": "3"}}, Patch.STRATEGIC)["data"] == {"b": "2", "c": "3"}
    replaced = [{"op": "replace", "path": "/data/c", "value": "4"}]
    assert api.patch(MINE, replaced, Patch.JSON)["data"] == {"b": "2", "c": "4"}
    assert api.patch(MINE, a_config_map(c="5"), Patch.APPLY)["data"] == {"b": "2", "c": "5"}


def test_a_refusal_has_the_servers_status_reason_and_words(cluster: Cluster) -> None:
    with pytest.raises(Refused) as refused:
        cluster.api.get(PODS.at(TEAM, "none"))
    error = refused.value
    assert (error.status, error.reason, error.message) == (404, "NotFound", 'pods "none" not found')
    assert str(error) == '404 NotFound: pods "none" not found'


def test_a_refusal_of_logs_is_one_too(cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("silent", scheduler="nobody"))
    with pytest.raises(Refused) as refused:
        pod.logs("none")
    assert (refused.value.status, refused.value.reason) == (400, "BadRequest")


def test_a_watch_tells_of_changes_in_their_order_and_ends_in_time(cluster: Cluster, mine: Json) -> None:
    since = {"resourceVersion": mine["metadata"]["resourceVersion"], "fieldSelector": "metadata.name=mine"}
    cluster.api.patch(MINE, {"data": {"a": "2"}})
    cluster.api.patch(MINE, {"data": {"a": "3"}})
    with cluster.api.watch(CONFIG_MAPS.at(TEAM), within_s=1, query=since) as events:
        seen = [(event.change, event.object["data"]["a"]) for event in events]
    assert seen == [(Change.MODIFIED, "2"), (Change.MODIFIED, "3")]


def test_a_watch_of_what_one_may_not_see_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Refused) as refused, cluster.as_user("alice").api.watch(PODS.at(), within_s=5):
        pass
    assert refused.value.status == 403


def test_one_connection_serves_many_requests_and_a_watch_leaves_none(cluster: Cluster) -> None:
    cluster.api.list(PODS.at())
    before = sockets()
    for _ in range(5):
        cluster.api.list(PODS.at())
    with cluster.api.watch(PODS.at(), within_s=0.1) as events:
        list(events)
    assert sockets() == before


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


def test_no_proxy_of_the_environment_is_asked(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    cluster.api.list(PODS.at())
    assert "team-a" in cluster.kubectl.run("get", "namespaces")


def test_kubectl_speaks_as_its_identity(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    assert alice.kubectl.run("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "alice"
    with pytest.raises(RigError, match=r"kubectl get nodes: status 1: .*Forbidden"):
        alice.kubectl.run("get", "nodes")


def test_kubectl_applies_manifests(cluster: Cluster) -> None:
    yaml = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: mine, namespace: {TEAM}}}\ndata: {{a: '1'}}\n"
    assert "configmap/mine created" in cluster.kubectl.apply(yaml)
    cluster.api.delete(MINE)


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
