"""Tokens that identify a node: those of its pods and those bound to it.

All others can write nothing, and the error says why.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest

from partage_plugins.api.keys import INVENTORY
from real.permissions.objects import a_lease, an_event, an_own_node
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import EVENTS, LEASES, SECRETS, Json
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import ADVERTISER, OUR_NAMESPACE

AS_ADVERTISER = {"serviceAccountName": ADVERTISER.name}
COMMAND = "create token partage-advertiser -n partage-system --bound-object-kind Node --bound-object-name NODE"
SENTENCE = (
    "partage: this token of the advertiser does not say which node it is for; "
    f"use the one that its pod is given, or make one with kubectl {COMMAND}"
)


def assert_it_can_write_nothing(nobody: Cluster) -> None:
    writes: tuple[Callable[[], object], ...] = (
        lambda: nobody.nodes.annotate("n1", {INVENTORY: "{}"}),
        lambda: nobody.api.create(LEASES.at(OUR_NAMESPACE), a_lease("n1")),
        lambda: nobody.api.create(EVENTS.at("default"), an_event("n1")),
    )
    for write in writes:
        with pytest.raises(Refused) as refused:
            write()
        assert refused.value.status == 403
        assert refused.value.message.endswith(SENTENCE)


def assert_it_speaks_for(node: str, advertiser: Cluster) -> None:
    advertiser.nodes.annotate(node, {INVENTORY: "{}"})
    advertiser.nodes.annotate(node, {INVENTORY: None})


def assert_it_does_not_speak_for(node: str, advertiser: Cluster) -> None:
    with pytest.raises(Refused, match=f"may not change node {node}; use the token of that node"):
        advertiser.nodes.annotate(node, {INVENTORY: "{}"})


def a_pod_of_the_advertiser(cluster: Cluster, name: str, node: str | None) -> Pod:
    placed = {"nodeName": node} if node else {"schedulerName": "nobody"}
    return cluster.pods.create(OUR_NAMESPACE, a_pod(name, spec={**AS_ADVERTISER, **placed}))


def test_a_token_that_is_bound_to_nothing_writes_nothing(cluster: Cluster) -> None:
    assert_it_can_write_nothing(cluster.as_account(ADVERTISER))


def test_a_token_that_never_ends_writes_nothing(cluster: Cluster, lasting_token: str) -> None:
    assert_it_can_write_nothing(cluster.with_token(ADVERTISER, lasting_token))


def test_the_token_of_a_pod_that_has_no_node_yet_writes_nothing(cluster: Cluster) -> None:
    pod = a_pod_of_the_advertiser(cluster, "waiting", None)
    assert_it_can_write_nothing(cluster.as_account(ADVERTISER, pod.object))


def test_the_token_of_a_pod_speaks_for_the_pods_node_alone(cluster: Cluster) -> None:
    pod = a_pod_of_the_advertiser(cluster, "on-n2", "n2")
    advertiser = cluster.as_account(ADVERTISER, pod.object)
    assert_it_speaks_for("n2", advertiser)
    assert_it_does_not_speak_for("n1", advertiser)


def test_a_token_that_is_bound_to_a_node_speaks_for_it_alone(cluster: Cluster, n1: Json) -> None:
    advertiser = cluster.as_account(ADVERTISER, n1)
    assert_it_speaks_for("n1", advertiser)
    assert_it_does_not_speak_for("n2", advertiser)


def test_a_token_made_as_the_sentence_says_speaks_for_its_node(cluster: Cluster) -> None:
    token = cluster.kubectl.run(*COMMAND.replace("NODE", "n1").split()).strip()
    assert_it_speaks_for("n1", cluster.with_token(ADVERTISER, token))


def test_a_token_ends_with_its_node_even_if_another_gets_the_name(cluster: Cluster) -> None:
    old = cluster.as_account(ADVERTISER, cluster.nodes.create(an_own_node("replaced")))
    assert_it_speaks_for("replaced", old)
    cluster.nodes.delete("replaced")
    cluster.nodes.create(an_own_node("replaced"))
    until("the old node's token is refused", lambda: why_still_known(old))
    cluster.nodes.delete("replaced")


@pytest.mark.parametrize(
    "name",
    [
        "partage-scheduler",
        "partage-sharepods",
        "partage-kube-scheduler",
        "partage-rollout-0",
        "partage-of-a-later-version",
    ],
)
def test_a_node_named_like_a_lease_of_partage_may_not_write_it(cluster: Cluster, name: str) -> None:
    advertiser = cluster.as_account(ADVERTISER, cluster.nodes.create(an_own_node(name)))
    held = cluster.api.create(LEASES.at(OUR_NAMESPACE), a_lease(name, holder="who-leads"))
    attempts: tuple[Callable[[], object], ...] = (
        lambda: advertiser.api.create(LEASES.at(OUR_NAMESPACE), a_lease(name)),
        lambda: advertiser.api.replace(LEASES.at(OUR_NAMESPACE, name), {**held, "spec": a_lease(name)["spec"]}),
        lambda: advertiser.api.delete(LEASES.at(OUR_NAMESPACE, name)),
    )
    refusals = [refusal_of(attempt) for attempt in attempts]
    cluster.api.delete(LEASES.at(OUR_NAMESPACE, name))
    cluster.nodes.delete(name)
    assert all("a node of such a name cannot share its cards, rename it" in refusal for refusal in refusals), refusals


def refusal_of(attempt: Callable[[], object]) -> str:
    """The error, or an empty string."""
    try:
        attempt()
    except Refused as refused:
        return refused.message
    return ""


def why_still_known(advertiser: Cluster) -> str | None:
    """The API server caches tokens for some seconds."""
    try:
        advertiser.nodes.annotate("replaced", {INVENTORY: None})
    except Refused as refused:
        return None if refused.status == 401 else str(refused)
    return "it still speaks for its node"


@pytest.fixture
def lasting_token(cluster: Cluster) -> Iterator[str]:
    metadata = {"name": "lasting", "annotations": {"kubernetes.io/service-account.name": ADVERTISER.name}}
    cluster.api.create(SECRETS.at(OUR_NAMESPACE), {"metadata": metadata, "type": "kubernetes.io/service-account-token"})
    path = SECRETS.at(OUR_NAMESPACE, "lasting")
    until("the token is made", lambda: None if "data" in cluster.api.get(path) else "the secret is empty")
    yield base64.b64decode(cluster.api.get(path)["data"]["token"]).decode()
    cluster.api.delete(path)
