"""One request binds a pod and gives it its allocation; nobody can bind it twice, and nobody's forgery survives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.codecs import decode_allocation, encode_allocation, key_id, verify
from partage_plugins.vocabulary import GPU, Allocation, CardId, ContainerName, GpuGrant, NodeName, PodUid
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from rig.client.api import Patch
from rig.client.binding import binding
from rig.client.cluster import Cluster
from rig.client.manifests import a_node, a_pod
from rig.client.pods import Pod
from rig.client.resources import PODS
from rig.errors import Refused
from rig.identity.people import SCHEDULER, TEAM

pytestmark = pytest.mark.slow

KEY = Ed25519PrivateKey.generate()


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    cluster.nodes.create(a_node("n1"))
    yield "n1"
    cluster.nodes.delete("n1")


@pytest.fixture
def pod(cluster: Cluster) -> Pod:
    return cluster.as_user("alice").pods.create(TEAM, a_pod("train", scheduler="nobody"))


def half_a_card(pod: Pod, node: str) -> Allocation:
    grant = GpuGrant(card=CardId("GPU-1"), share_milli=500, limit_milli=1000, memory_bytes=8 << 30)
    containers = {ContainerName("main"): {GPU.name: (grant,)}}
    return Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(node), containers=containers)


def test_a_bound_pod_has_its_node_and_a_good_signature(cluster: Cluster, node: str, pod: Pod) -> None:
    allocation = half_a_card(pod, node)
    cluster.bind(pod, node, allocation, signed_by=KEY)
    pod.refresh()
    assert pod.node == node
    assert pod.condition("PodScheduled")["status"] == "True"
    verify(pod.annotations[ALLOCATION], pod.annotations[SIGNATURE], {key_id(KEY.public_key()): KEY.public_key()})
    assert decode_allocation(pod.annotations[ALLOCATION], [GPU]) == allocation


def test_node_and_allocation_appear_in_one_event(cluster: Cluster, node: str, pod: Pod) -> None:
    """A kubelet never sees the pod without its allocation."""
    since = {"resourceVersion": pod.object["metadata"]["resourceVersion"], "fieldSelector": f"metadata.name={pod.name}"}
    cluster.bind(pod, node, half_a_card(pod, node), signed_by=KEY)
    with cluster.api.watch(PODS.at(TEAM), within_s=10, query=since) as events:
        seen = next(events).object
    assert seen["spec"]["nodeName"] == node
    assert ALLOCATION in seen["metadata"]["annotations"]


def test_a_forged_allocation_is_overwritten(cluster: Cluster, node: str) -> None:
    """It was there before admission kept others from writing it."""
    forged = {ALLOCATION: "forged", SIGNATURE: "forged"}
    pod = cluster.as_user("alice").pods.create(TEAM, a_pod("forger", scheduler="nobody", annotations={"other": "kept"}))
    cluster.as_account(SCHEDULER).api.patch(pod.path("status"), {"metadata": {"annotations": forged}})
    allocation = half_a_card(pod, node)
    cluster.bind(pod, node, allocation, signed_by=KEY)
    pod.refresh()
    assert pod.annotations[ALLOCATION] == encode_allocation(allocation)
    assert pod.annotations["other"] == "kept"


def test_a_second_binding_is_a_conflict_and_changes_nothing(cluster: Cluster, node: str, pod: Pod) -> None:
    cluster.bind(pod, node, half_a_card(pod, node), signed_by=KEY)
    with pytest.raises(Refused) as refused:
        cluster.bind(pod, "n2", half_a_card(pod, "n2"), signed_by=KEY)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    pod.refresh()
    assert pod.node == node
    assert f'"{node}"' in pod.annotations[ALLOCATION]


def test_another_pod_of_the_same_name_is_not_bound(cluster: Cluster, node: str, pod: Pod) -> None:
    pod.delete_and_wait(grace_s=0)
    namesake = cluster.pods.create(TEAM, a_pod(pod.name, scheduler="nobody"))
    with pytest.raises(Refused) as refused:
        cluster.bind(pod, node, half_a_card(pod, node), signed_by=KEY)
    assert refused.value.status == 409
    assert namesake.refresh()["spec"].get("nodeName") is None


def test_the_api_server_itself_would_have_taken_it(cluster: Cluster, node: str, pod: Pod) -> None:
    """The reason for that check, and the day on which it is no longer needed."""
    cluster.api.create(pod.path("binding"), binding(pod, node, {"no key/": "x"}))
    running = {"status": {"phase": "Running"}}
    with pytest.raises(Refused) as refused:
        cluster.api.patch(pod.path("status"), running, Patch.STRATEGIC)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
