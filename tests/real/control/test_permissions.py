"""Who may do what: an ordinary user, a node, and our scheduler's service account, each both ways.

The advertiser's account has a folder of its own, `tests/real/permissions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from partage_base.kube import micro_time
from rig.client.api import Patch
from rig.client.cluster import Cluster
from rig.client.manifests import a_node, a_pod
from rig.client.resources import EVENTS, LEASES, NODES, SECRETS, Json
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM

pytestmark = pytest.mark.slow

INVENTORY = {"partage.dev/inventory": "{}"}


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    cluster.nodes.create(a_node("n1"))
    yield "n1"
    cluster.nodes.delete("n1")


@pytest.fixture
def other_node(cluster: Cluster) -> Iterator[str]:
    cluster.nodes.create(a_node("n2"))
    yield "n2"
    cluster.nodes.delete("n2")


def forbidden(request: Callable[[], object]) -> None:
    with pytest.raises(Refused) as refused:
        request()
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def a_lease(name: str) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 10},
    }


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


def test_a_user_cannot_bind_her_own_pod(cluster: Cluster, node: str) -> None:
    alice = cluster.as_user("alice")
    pod = alice.pods.create(TEAM, a_pod("hers", scheduler="nobody"))
    binding = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": node}}
    forbidden(lambda: alice.api.create(pod.path("binding"), binding))
    forbidden(lambda: alice.api.create(f"/api/v1/namespaces/{TEAM}/bindings", binding))
    forbidden(lambda: alice.api.patch(pod.path("status"), {"status": {"phase": "Running"}}))


def test_a_node_speaks_for_itself_alone(cluster: Cluster, node: str, other_node: str) -> None:
    kubelet = cluster.as_node(node)
    assert kubelet.nodes.annotate(node, INVENTORY)["metadata"]["annotations"]["partage.dev/inventory"] == "{}"
    forbidden(lambda: kubelet.nodes.annotate(other_node, INVENTORY))
    forbidden(lambda: kubelet.api.patch(NODES.at(name=other_node, sub="status"), {"status": {"capacity": {"x": "1"}}}))


def test_our_scheduler_sees_pods_and_nodes_and_reports(cluster: Cluster, node: str) -> None:
    scheduler = cluster.as_account(SCHEDULER)
    pod = cluster.pods.create(TEAM, a_pod("waiting", scheduler="nobody"))
    assert pod.uid in [each.uid for each in scheduler.pods.list()]
    assert node in scheduler.nodes.names()
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


def test_our_scheduler_changes_nothing_else(cluster: Cluster, node: str) -> None:
    scheduler = cluster.as_account(SCHEDULER)
    pod = cluster.pods.create(TEAM, a_pod("waiting", scheduler="nobody"))
    forbidden(lambda: scheduler.pods.create(TEAM, a_pod("another")))
    forbidden(lambda: scheduler.api.patch(pod.path(), {"metadata": {"annotations": {"a": "b"}}}))
    forbidden(lambda: scheduler.api.replace(pod.path(), pod.object))
    forbidden(lambda: scheduler.api.replace(LEASES.at(OUR_NAMESPACE, node), a_lease(node)))
    forbidden(lambda: scheduler.nodes.annotate(node, INVENTORY))
    forbidden(lambda: scheduler.api.list(SECRETS.at(OUR_NAMESPACE)))
