"""The policies hold by themselves: here RBAC gives the account every right over what they watch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.vocabulary.keys import INVENTORY
from real.permissions.attempts import N1, WRITES, Attempt
from rig.client.cluster import Cluster
from rig.client.policies import mistakes_in
from rig.client.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import ADVERTISER

NAME = "partage-advertiser-everything"
GROUPS = ["", "coordination.k8s.io", "events.k8s.io"]
RESOURCES = ["nodes", "nodes/status", "nodes/proxy", "leases", "events"]
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ASKED = {"verb": "deletecollection", "resource": "nodes"}


@pytest.fixture(scope="module", autouse=True)
def every_right(admin: Cluster) -> Iterator[None]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    subject = {"kind": "ServiceAccount", "namespace": ADVERTISER.namespace, "name": ADVERTISER.name}
    rules = [{"apiGroups": GROUPS, "resources": RESOURCES, "verbs": ["*"]}]
    admin.api.create(CLUSTER_ROLES.at(), {"metadata": {"name": NAME}, "rules": rules})
    binding = {"metadata": {"name": NAME}, "roleRef": role, "subjects": [subject]}
    admin.api.create(CLUSTER_ROLE_BINDINGS.at(), binding)
    until("RBAC allows it everything", lambda: None if may_everything(admin) else "not yet")
    yield
    admin.api.delete(CLUSTER_ROLE_BINDINGS.at(name=NAME))
    admin.api.delete(CLUSTER_ROLES.at(name=NAME))
    until("RBAC has forgotten it", lambda: "not yet" if may_everything(admin) else None)


def may_everything(admin: Cluster) -> bool:
    spec = {"user": ADVERTISER.user, "resourceAttributes": _ASKED}
    return bool(admin.api.create(REVIEWS, {"spec": spec})["status"]["allowed"])


@pytest.mark.parametrize("attempt", WRITES.values(), ids=WRITES)
def test_it_still_may_not(advertiser: Cluster, attempt: Attempt) -> None:
    with pytest.raises(Refused) as refused:
        attempt(advertiser)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    assert "denied request: partage: the advertiser" in refused.value.message


def test_a_put_of_the_inventory_alone_is_right(cluster: Cluster, advertiser: Cluster) -> None:
    node = advertiser.nodes.get("n1")
    node["metadata"]["annotations"][INVENTORY] = "put"
    advertiser.api.replace(N1, node)
    assert cluster.nodes.annotations("n1")[INVENTORY] == "put"
    cluster.nodes.annotate("n1", {INVENTORY: None})


def test_what_a_node_is_capable_of_cannot_be_slipped_in_with_the_inventory(
    cluster: Cluster, advertiser: Cluster
) -> None:
    """The API server lets clients change a status only as a status."""
    slipped = {"metadata": {"annotations": {INVENTORY: "{}"}}, "status": {"capacity": {"partage.dev/gpus": "8"}}}
    advertiser.api.patch(N1, slipped)
    assert "partage.dev/gpus" not in cluster.nodes.get("n1")["status"]["capacity"]
    cluster.nodes.annotate("n1", {INVENTORY: None})


@pytest.mark.parametrize("kind", ["nodes", "leases", "events"])
def test_the_api_server_finds_no_mistake_in_the_policy(cluster: Cluster, kind: str) -> None:
    assert mistakes_in(cluster, f"partage-advertiser-{kind}") == {}
