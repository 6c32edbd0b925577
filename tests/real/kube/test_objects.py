"""What we write is what the real API server takes, and what it answers is what we read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from partage_base.kube import (
    Access,
    Answered,
    ApiServer,
    Conflict,
    Lease,
    LeaseSpec,
    Meta,
    Node,
    NotFound,
    ObjectEvent,
    ObjectReference,
    binding_path,
    events_path,
    lease_path,
    leases_path,
    micro_time,
    node_path,
    nodes_path,
    pod_path,
    pods_path,
)
from rig.client.cluster import Cluster
from rig.client.manifests import a_node, a_pod
from rig.control.plane import ControlPlane
from rig.identity.people import OUR_NAMESPACE, TEAM, Identity

Whose = Callable[[Identity], Access]


@pytest.fixture
async def server(control: ControlPlane, whose: Whose) -> AsyncIterator[ApiServer]:
    async with ApiServer(whose(control.identities.admin), user_agent="partage-test") as server:
        yield server


async def test_a_lease_is_made_renewed_and_never_overwritten_by_who_is_late(server: ApiServer) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)  # without a fraction, which the API server would refuse
    spec = LeaseSpec(
        holder_identity="n9", lease_duration_seconds=40, acquire_time=micro_time(now), renew_time=micro_time(now)
    )
    path, lease = lease_path(OUR_NAMESPACE, "n9"), Lease(metadata=Meta(name="n9"), spec=spec)
    made = await server.create(leases_path(OUR_NAMESPACE), lease, Lease)
    assert made.spec == spec
    with pytest.raises(Conflict) as there:
        await server.create(leases_path(OUR_NAMESPACE), lease, Lease)
    assert there.value.reason == "AlreadyExists"
    later = msgspec.structs.replace(spec, renew_time=micro_time(datetime.now(UTC)))
    await server.replace(path, msgspec.structs.replace(made, spec=later), Lease)
    with pytest.raises(Conflict) as late:
        await server.replace(path, msgspec.structs.replace(made, spec=later), Lease)
    assert late.value.reason == "Conflict"
    await server.delete(path)
    with pytest.raises(NotFound):
        await server.delete(path)


async def test_an_event_about_a_node_is_taken(server: ApiServer) -> None:
    event = ObjectEvent(
        metadata=Meta(generate_name="n9.", namespace="default"),
        involved_object=ObjectReference(kind="Node", name="n9", uid="n9", api_version="v1"),
        reason="CardLost",
        message="card GPU-1 fell off the bus",
        type="Warning",
        action="Watch",
        event_time=micro_time(datetime.now(UTC)),
        reporting_component="partage.dev/advertiser",
        reporting_instance="n9",
    )
    made = await server.create(events_path("default"), event, ObjectEvent)
    assert msgspec.structs.replace(made, metadata=event.metadata) == event
    about = await server.list(events_path(), ObjectEvent, fields="involvedObject.name=n9,reason=CardLost")
    assert [item.message for item in about.items] == ["card GPU-1 fell off the bus"]
    await server.delete(f"{events_path('default')}/{made.metadata.name}")


async def test_a_pod_is_bound_with_its_annotations_once(server: ApiServer, cluster: Cluster) -> None:
    cluster.nodes.create(a_node("n9"))
    pod = cluster.pods.create(TEAM, a_pod("bound", scheduler="nobody"))
    binding = {
        "metadata": {"name": pod.name, "uid": pod.uid, "annotations": {"example.com/note": "{}"}},
        "target": {"kind": "Node", "name": "n9"},
    }
    await server.create(binding_path(TEAM, pod.name), binding, msgspec.Raw)
    bound = await server.get(pod_path(TEAM, pod.name), dict[str, Any])
    assert bound["spec"]["nodeName"] == "n9"
    assert bound["metadata"]["annotations"]["example.com/note"] == "{}"
    with pytest.raises(Conflict):
        await server.create(binding_path(TEAM, pod.name), binding, msgspec.Raw)
    cluster.nodes.delete("n9")


async def test_each_kind_of_patch_and_of_page_is_understood(server: ApiServer, cluster: Cluster) -> None:
    names = [f"page-{number}" for number in range(7)]
    for name in names:
        cluster.nodes.create(a_node(name))
    path = node_path("page-0")
    await server.patch(path, {"metadata": {"labels": {"a": "1"}}}, Node)
    await server.patch(path, {"metadata": {"labels": {"b": "2"}}}, Node, how="strategic")
    add = [{"op": "add", "path": "/metadata/labels/c", "value": "3"}]
    labels = (await server.patch(path, add, Node, how="json")).metadata.labels
    assert {key: labels[key] for key in "abc"} == {"a": "1", "b": "2", "c": "3"}
    listing = await server.list(nodes_path(), Node, limit=2)
    assert {item.metadata.name for item in listing.items} >= set(names)
    assert len(listing.items) == len({item.metadata.uid for item in listing.items})
    assert len((await server.list(nodes_path(), Node, labels="a=1")).items) == 1
    with pytest.raises(Answered, match="422 Invalid"):
        await server.create(pods_path(TEAM), {"metadata": {"name": "x"}, "spec": {}}, msgspec.Raw)
    for name in names:
        cluster.nodes.delete(name)
