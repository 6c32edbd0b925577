"""Who may do what: an ordinary user, a node, and our scheduler's service account, each both ways."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from partage_base.kube import micro_time
from partage_plugins.vocabulary.keys import ALLOCATION
from real.permissions.objects import a_lease
from rig.client.api import Patch
from rig.client.binding import bind, binding
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import EVENTS, LEASES, NODES, PODS, SECRETS, Json
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.patience import PATIENCE_S

pytestmark = pytest.mark.slow

INVENTORY = {"partage.dev/inventory": "{}"}


def forbidden(request: Callable[[], object]) -> None:
    with pytest.raises(Refused) as refused:
        request()
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def an_event(pod: Json) -> Json:
    metadata = pod["metadata"]
    about = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.1"},
        "eventTime": micro_time(datetime.now(UTC)),
        "involvedObject": about,
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "message": "0/0 nodes are available",
        "type": "Warning",
        "reportingComponent": "partage-scheduler",
        "reportingInstance": "one",
    }


def test_a_user_cannot_bind_her_own_pod(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    pod = alice.pods.create(TEAM, a_pod("hers", scheduler="nobody"))
    binding = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": "n1"}}
    forbidden(lambda: alice.api.create(pod.path("binding"), binding))
    forbidden(lambda: alice.api.create(f"/api/v1/namespaces/{TEAM}/bindings", binding))
    forbidden(lambda: alice.api.patch(pod.path("status"), {"status": {"phase": "Running"}}))


def test_a_node_speaks_for_itself_alone(cluster: Cluster) -> None:
    kubelet = cluster.as_node("n1")
    assert kubelet.nodes.annotate("n1", INVENTORY)["metadata"]["annotations"]["partage.dev/inventory"] == "{}"
    forbidden(lambda: kubelet.nodes.annotate("n2", INVENTORY))
    forbidden(lambda: kubelet.api.patch(NODES.at(name="n2", sub="status"), {"status": {"capacity": {"x": "1"}}}))
    cluster.nodes.annotate("n1", dict.fromkeys(INVENTORY))


def test_our_scheduler_sees_pods_and_nodes_and_reports(cluster: Cluster) -> None:
    scheduler = cluster.as_account(SCHEDULER)
    pod = cluster.pods.create(TEAM, a_pod("waiting", scheduler="nobody"))
    assert pod.uid in [each.uid for each in scheduler.pods.list()]
    assert "n1" in scheduler.nodes.names()
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no card"}
    scheduler.api.patch(pod.path("status"), {"status": {"conditions": [unschedulable]}}, Patch.STRATEGIC)
    scheduler.api.create(EVENTS.at(TEAM), an_event(pod.object))
    assert pod.refresh()
    assert pod.condition("PodScheduled")["message"] == "no card"
    assert [event.reason for event in pod.events()] == ["FailedScheduling"]


def test_our_scheduler_elects_its_leader_in_our_namespace_alone(cluster: Cluster) -> None:
    scheduler = cluster.as_account(SCHEDULER)
    lease = scheduler.api.create(LEASES.at(OUR_NAMESPACE), a_lease("partage-scheduler"))
    lease["spec"]["holderIdentity"] = "another"
    scheduler.api.replace(LEASES.at(OUR_NAMESPACE, "partage-scheduler"), lease)
    forbidden(lambda: scheduler.api.delete(LEASES.at(OUR_NAMESPACE, "partage-scheduler")))
    forbidden(lambda: scheduler.api.create(LEASES.at("kube-system"), a_lease("partage-scheduler")))
    cluster.api.delete(LEASES.at(OUR_NAMESPACE, "partage-scheduler"))


def test_our_scheduler_changes_nothing_else(cluster: Cluster) -> None:
    scheduler = cluster.as_account(SCHEDULER)
    pod = cluster.pods.create(TEAM, a_pod("waiting", scheduler="nobody"))
    forbidden(lambda: scheduler.pods.create(TEAM, a_pod("another")))
    forbidden(lambda: scheduler.api.patch(pod.path(), {"metadata": {"annotations": {"a": "b"}}}))
    forbidden(lambda: scheduler.api.replace(pod.path(), pod.object))
    forbidden(lambda: scheduler.api.replace(LEASES.at(OUR_NAMESPACE, "n1"), a_lease("n1")))
    forbidden(lambda: scheduler.nodes.annotate("n1", INVENTORY))
    forbidden(lambda: scheduler.api.list(SECRETS.at(OUR_NAMESPACE)))


def test_node_and_allocation_appear_in_one_event(cluster: Cluster) -> None:
    """A kubelet never sees the pod without its allocation."""
    pod = cluster.pods.create(TEAM, a_pod("train", scheduler="nobody"))
    since = {"resourceVersion": pod.object["metadata"]["resourceVersion"], "fieldSelector": f"metadata.name={pod.name}"}
    bind(cluster.as_account(SCHEDULER).api, pod, "n1", {ALLOCATION: "signed"})
    with cluster.api.watch(PODS.at(TEAM), within_s=PATIENCE_S, query=since) as events:
        seen = next(events).object
    assert seen["spec"]["nodeName"] == "n1"
    assert seen["metadata"]["annotations"][ALLOCATION] == "signed"


def test_another_pod_of_the_same_name_is_not_bound(cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("same", scheduler="nobody"))
    pod.delete_and_wait(grace_s=0)
    namesake = cluster.pods.create(TEAM, a_pod("same", scheduler="nobody"))
    with pytest.raises(Refused) as refused:
        cluster.as_account(SCHEDULER).api.create(pod.path("binding"), binding(pod, "n1", {}))
    assert refused.value.status == HTTPStatus.CONFLICT
    assert namesake.refresh()["spec"].get("nodeName") is None
