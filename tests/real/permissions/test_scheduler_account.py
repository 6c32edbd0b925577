"""Denied to an ordinary user and to our scheduler's service account. What the latter may do, real/scheduler tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partage_plugins.api.keys import ALLOCATION, INVENTORY
from real.permissions.objects import a_lease
from rig.client.binding import bind
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import LEASES, PODS, SECRETS
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def forbidden(request: Callable[[], object]) -> None:
    with pytest.raises(Refused) as refused:
        request()
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_a_user_cannot_bind_her_own_pod(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    pod = alice.pods.create(TEAM, a_pod("hers", scheduler="nobody"))
    binding = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": "n1"}}
    forbidden(lambda: alice.api.create(pod.path("binding"), binding))
    forbidden(lambda: alice.api.create(f"/api/v1/namespaces/{TEAM}/bindings", binding))
    forbidden(lambda: alice.api.patch(pod.path("status"), {"status": {"phase": "Running"}}))


def test_our_scheduler_changes_nothing_else(cluster: Cluster) -> None:
    scheduler = cluster.as_account(SCHEDULER)
    pod = cluster.pods.create(TEAM, a_pod("waiting", scheduler="nobody"))
    forbidden(lambda: scheduler.pods.create(TEAM, a_pod("another")))
    forbidden(lambda: scheduler.api.patch(pod.path(), {"metadata": {"annotations": {"a": "b"}}}))
    forbidden(lambda: scheduler.api.replace(pod.path(), pod.object))
    forbidden(lambda: scheduler.api.replace(LEASES.at(OUR_NAMESPACE, "n1"), a_lease("n1")))
    forbidden(lambda: scheduler.nodes.annotate("n1", {INVENTORY: "{}"}))
    forbidden(lambda: scheduler.api.create(LEASES.at("kube-system"), a_lease("partage-scheduler")))
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
