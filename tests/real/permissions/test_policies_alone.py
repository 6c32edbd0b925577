"""The policies hold by themselves: here RBAC gives the account every right over the kinds they cover."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.api.keys import INVENTORY
from real.permissions.attempts import N1, WRITES, Attempt
from rig.client.cluster import Cluster
from rig.client.rights import every_right
from rig.errors import Refused
from rig.identity.people import ADVERTISER

GROUPS = ["", "coordination.k8s.io", "events.k8s.io"]
RESOURCES = ["nodes", "nodes/status", "nodes/proxy", "leases", "events"]


@pytest.fixture(scope="module", autouse=True)
def rights(admin: Cluster) -> Iterator[None]:
    rules = [{"apiGroups": GROUPS, "resources": RESOURCES, "verbs": ["*"]}]
    with every_right(admin, "partage-advertiser-everything", rules, ADVERTISER):
        yield


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
    """The API server lets clients change a status only by the status subresource."""
    slipped = {"metadata": {"annotations": {INVENTORY: "{}"}}, "status": {"capacity": {"partage.dev/gpus": "8"}}}
    advertiser.api.patch(N1, slipped)
    assert "partage.dev/gpus" not in cluster.nodes.get("n1")["status"]["capacity"]
    cluster.nodes.annotate("n1", {INVENTORY: None})
