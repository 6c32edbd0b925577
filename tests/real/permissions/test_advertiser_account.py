"""The advertiser's account as shipped: it may do what its work needs, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.api.keys import INVENTORY
from real.permissions.attempts import BEYOND, N1, Attempt, adding, applying, changing
from real.permissions.objects import a_lease, an_event
from rig.client.api import Patch
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import EVENTS, LEASES, NODES, RESOURCE_SLICES
from rig.errors import Refused
from rig.identity.people import ADVERTISER, OUR_NAMESPACE, TEAM
from rig.patience import PATIENCE_S

LEASE = LEASES.at(OUR_NAMESPACE, "n1")


@pytest.fixture(autouse=True)
def without_inventory(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.nodes.annotate("n1", {INVENTORY: None})


@pytest.mark.parametrize(
    "write",
    [
        changing(N1, {"metadata": {"annotations": {INVENTORY: "{}"}}}),
        changing(N1, {"metadata": {"annotations": {INVENTORY: "{}"}}}, Patch.STRATEGIC),
        changing(N1, adding("/metadata/annotations/partage.dev~1inventory", "{}"), Patch.JSON),
        applying("n1", {"annotations": {INVENTORY: "{}"}}),
    ],
    ids=["merge", "strategic", "json", "apply"],
)
def test_it_tells_its_nodes_inventory_in_every_way_of_patching(
    cluster: Cluster, advertiser: Cluster, write: Attempt
) -> None:
    write(advertiser)
    assert {"theirs": "kept", INVENTORY: "{}"}.items() <= cluster.nodes.annotations("n1").items()


def test_it_changes_the_inventory_and_takes_it_away(cluster: Cluster, advertiser: Cluster) -> None:
    for value in ("first", "second", None):
        advertiser.nodes.annotate("n1", {INVENTORY: value})
        assert cluster.nodes.annotations("n1").get(INVENTORY) == value


def test_it_writes_the_first_annotation_of_a_node_and_takes_it_away(cluster: Cluster) -> None:
    node = cluster.nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
    advertiser = cluster.as_account(ADVERTISER, node)
    advertiser.nodes.annotate("bare", {INVENTORY: "{}"})
    advertiser.nodes.annotate("bare", {INVENTORY: None})
    assert INVENTORY not in cluster.nodes.annotations("bare")
    cluster.nodes.delete("bare")


def test_a_large_inventory_on_a_crowded_node_is_no_trouble(cluster: Cluster) -> None:
    """The cost of a policy per request is limited."""
    images = [{"names": [f"registry.invalid/image-{n}:{m}" for m in range(5)], "sizeBytes": n} for n in range(1000)]
    crowd = {
        "labels": {f"of-somebody/label-{n}": "x" * 60 for n in range(300)},
        "annotations": {f"of-somebody/note-{n}": "x" * 200 for n in range(300)},
    }
    node = cluster.nodes.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "crowded", **crowd}, "status": {"images": images}}
    )
    inventory = "x" * 150_000
    advertiser = cluster.as_account(ADVERTISER, node)
    advertiser.nodes.annotate("crowded", {INVENTORY: inventory})
    advertiser.nodes.annotate("crowded", {INVENTORY: inventory + "."})
    assert cluster.nodes.annotations("crowded")[INVENTORY] == inventory + "."
    cluster.nodes.delete("crowded")


def test_it_holds_its_nodes_lease_renews_it_and_gives_it_up(advertiser: Cluster) -> None:
    advertiser.api.create(LEASES.at(OUR_NAMESPACE), a_lease("n1"))
    lease = advertiser.api.get(LEASE)
    lease["spec"]["renewTime"] = "2030-01-01T00:00:00.000000Z"
    assert advertiser.api.replace(LEASE, lease)["spec"]["renewTime"] == "2030-01-01T00:00:00.000000Z"
    advertiser.api.delete(LEASE)


OLDER = {"source": {"component": "partage-advertiser", "host": "n1"}, "firstTimestamp": "2030-01-01T00:00:00Z"}
NEWER = {"source": {}, "eventTime": "2030-01-01T00:00:00.000000Z", "action": "CardLost"}


@pytest.mark.parametrize("spelt", [OLDER, NEWER], ids=["older", "newer"])
def test_it_reports_on_its_node_and_says_that_it_happened_again(
    cluster: Cluster, advertiser: Cluster, spelt: dict[str, object]
) -> None:
    event = advertiser.api.create(EVENTS.at("default"), an_event("n1", **spelt))
    again = EVENTS.at("default", event["metadata"]["name"])
    advertiser.api.patch(again, {"count": 2})
    assert cluster.api.get(again)["count"] == 2


def test_it_sees_nodes_and_pods_one_by_one_and_which_devices_dra_drivers_offer(
    cluster: Cluster, advertiser: Cluster
) -> None:
    pod = cluster.pods.create(TEAM, a_pod("any", scheduler="nobody"))
    assert advertiser.pods.get(TEAM, pod.name).uid == pod.uid
    assert advertiser.nodes.get("n1")["metadata"]["name"] == "n1"
    assert advertiser.api.get(RESOURCE_SLICES.at())["kind"] == "ResourceSliceList"
    with advertiser.api.watch(NODES.at(), within_s=PATIENCE_S, query={"fieldSelector": "metadata.name=n1"}) as events:
        assert next(events).object["metadata"]["name"] == "n1"


@pytest.mark.parametrize("attempt", BEYOND.values(), ids=BEYOND)
def test_it_may_not(advertiser: Cluster, attempt: Attempt) -> None:
    """test_policies_alone tries denied writes of the kinds that it may write."""
    with pytest.raises(Refused) as refused:
        attempt(advertiser)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_it_may_not_act_as_another(advertiser: Cluster) -> None:
    read = ("get", "--raw", "/api/v1/nodes/n1")
    assert advertiser.kubectl.tried(*read).status == 0
    for who in ("partage-rig-admin", "system:node:n1", ADVERTISER.user):
        ran = advertiser.kubectl.tried(*read, f"--as={who}")
        assert (ran.status, ran.out) == (1, "")
        assert "(Forbidden)" in ran.err


def test_nobody_else_is_held_by_its_policies(cluster: Cluster) -> None:
    cluster.api.patch(N1, {"metadata": {"labels": {"of": "the-admin"}}})
    cluster.api.patch(N1, {"metadata": {"labels": {"of": None}}})
    cluster.as_node("n1").nodes.annotate("n1", {"of": "kubelet"})
    cluster.nodes.annotate("n1", {"of": None})
