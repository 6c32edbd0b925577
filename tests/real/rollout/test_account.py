"""The installer's account as shipped: it may report its own node, hold the Lease itself, and do nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partage_cli.rollout.lease import LABELS, NAME
from partage_cli.rollout.node_state import INSTALLED
from partage_plugins.api.keys import INVENTORY
from real.permissions.objects import a_lease
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import CONFIG_MAPS, LEASES, NODES, PODS, SECRETS
from rig.errors import Refused
from rig.identity.people import INSTALLER, OUR_NAMESPACE

Attempt = Callable[[Cluster], object]
N0, N1 = NODES.at(name="n00"), NODES.at(name="n01")
LEASE = LEASES.at(OUR_NAMESPACE, NAME)


@pytest.fixture
def installer(cluster: Cluster) -> Cluster:
    """The installer of n00."""
    return cluster.as_account(INSTALLER, cluster.nodes.get("n00"))


def lease(holder: str, name: str = NAME) -> dict[str, object]:
    return {**a_lease(name, holder=holder), "metadata": {"name": name, "labels": dict(LABELS)}}


def held_by(holder: str | None) -> Attempt:
    def attempt(us: Cluster) -> None:
        now = us.api.get(LEASE)
        us.api.replace(LEASE, {**now, "spec": {**now["spec"], "holderIdentity": holder}})

    return attempt


ATTEMPTS: dict[str, Attempt] = {
    "speak for another node": lambda us: us.nodes.annotate("n01", {INSTALLED: "{}"}),
    "tell an inventory": lambda us: us.nodes.annotate("n00", {INVENTORY: "{}"}),
    "label its node": lambda us: us.api.patch(N0, {"metadata": {"labels": {"partage.dev/canary": "yes"}}}),
    "taint its node": lambda us: us.api.patch(N0, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
    "write its node's status": lambda us: us.api.patch(f"{N0}/status", {"status": {"capacity": {"cpu": "1"}}}),
    "delete its node": lambda us: us.api.delete(N0),
    "make a heartbeat": lambda us: us.api.create(LEASES.at(OUR_NAMESPACE), lease("n00", "n00")),
    "lead as the scheduler": lambda us: us.api.create(LEASES.at(OUR_NAMESPACE), lease("n00", "partage-scheduler")),
    "make a second lease": lambda us: us.api.create(LEASES.at(OUR_NAMESPACE), lease("n00", "partage-rollout-1")),
    "give another node's lease back": held_by(None),
    "take the lease for another node": held_by("n02"),
    "delete the lease": lambda us: us.api.delete(LEASE),
    "read other leases": lambda us: us.api.list(LEASES.at("kube-node-lease")),
    "list pods": lambda us: us.api.list(PODS.at()),
    "make a pod": lambda us: us.api.create(PODS.at(OUR_NAMESPACE), a_pod("as-us", node="n01")),
    "evict a pod": lambda us: us.api.create(PODS.at("default", "web", "eviction"), {"metadata": {"name": "web"}}),
    "read secrets": lambda us: us.api.list(SECRETS.at(OUR_NAMESPACE)),
    "write the keys": lambda us: us.api.create(
        CONFIG_MAPS.at(OUR_NAMESPACE), {"metadata": {"name": "partage-keys"}, "data": {}}
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_it_may_not(cluster: Cluster, installer: Cluster, attempt: Attempt) -> None:
    cluster.api.create(LEASES.at(OUR_NAMESPACE), lease("n01"))
    with pytest.raises(Refused) as refused:
        attempt(installer)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_without_a_node_in_its_token_it_writes_nothing(cluster: Cluster) -> None:
    no_node = cluster.as_account(INSTALLER)
    with pytest.raises(Refused, match="does not say which node it is for"):
        no_node.nodes.annotate("n00", {INSTALLED: "{}"})
    with pytest.raises(Refused, match="does not say which node it is for"):
        no_node.api.create(LEASES.at(OUR_NAMESPACE), lease("n00"))


def test_it_takes_over_the_lease_renews_it_and_gives_it_back(cluster: Cluster, installer: Cluster) -> None:
    cluster.api.create(LEASES.at(OUR_NAMESPACE), lease("n01"))
    held_by("n00")(installer)
    held_by("n00")(installer)
    held_by(None)(installer)
    assert "holderIdentity" not in cluster.api.get(LEASE)["spec"]


def test_others_are_not_held_by_its_policies(cluster: Cluster) -> None:
    cluster.nodes.annotate("n01", {INSTALLED: "{}"})
    cluster.api.create(LEASES.at(OUR_NAMESPACE), lease("n01"))
    cluster.api.delete(LEASE)
