"""Plain calls: the request sent and the answer decoded."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from partage_base.kube import (
    ApiServer,
    Conflict,
    Lease,
    LeaseSpec,
    MalformedResponse,
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
from support.fake_api import FakeApi, Hang, Say
from support.kube import access_to, until
from support.loops import LOOPS

HEARTBEAT = Lease(metadata=Meta(name="n1"), spec=LeaseSpec(holder_identity="n1", lease_duration_seconds=40))


def a_node(api: FakeApi, name: str = "n1") -> None:
    api.objects.create(nodes_path(), {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {}})


@pytest.mark.parametrize("loop", LOOPS)
async def test_an_object_is_made_read_changed_and_deleted(api: FakeApi, server: ApiServer, loop: str) -> None:
    path = lease_path("partage-system", "n1")
    made = await server.create(leases_path("partage-system"), HEARTBEAT, Lease)
    assert (made.spec.holder_identity, made.spec.lease_duration_seconds) == ("n1", 40)
    assert made.metadata.uid
    assert await server.get(path, Lease) == made
    renewed = msgspec.structs.replace(made, spec=LeaseSpec(holder_identity="n1", renew_time="now"))
    assert (await server.replace(path, renewed, Lease)).spec.renew_time == "now"
    with pytest.raises(Conflict):
        await server.replace(path, made, Lease)
    await server.delete(path)
    with pytest.raises(NotFound):
        await server.get(path, Lease)


async def test_only_the_object_that_is_meant_is_deleted(api: FakeApi, server: ApiServer) -> None:
    made = await server.create(leases_path("partage-system"), HEARTBEAT, Lease)
    path = lease_path("partage-system", "n1")
    with pytest.raises(Conflict):
        await server.delete(path, uid="another")
    assert api.objects.get(path)
    await server.delete(path, uid=made.metadata.uid)
    with pytest.raises(NotFound):
        await server.get(path, Lease)


async def test_a_merge_patch_changes_what_it_names(api: FakeApi, server: ApiServer) -> None:
    a_node(api)
    patch = {"metadata": {"annotations": {"partage.dev/inventory": "{}"}, "labels": {"a": None}}}
    node = await server.patch(node_path("n1"), patch, Node)
    assert (node.metadata.annotations, node.metadata.labels) == ({"partage.dev/inventory": "{}"}, {})


@pytest.mark.parametrize(
    ("how", "content_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("json", "application/json-patch+json"),
    ],
)
async def test_each_kind_of_patch_says_what_it_is(api: FakeApi, server: ApiServer, how: Any, content_type: str) -> None:
    api.expect(Say(b"{}"))
    await server.patch(node_path("n1"), {}, Node, how=how)
    assert api.asked[0].headers["Content-Type"] == content_type


async def test_a_pod_is_bound_with_its_annotations_in_one_call(api: FakeApi, server: ApiServer) -> None:
    api.objects.create(pods_path("team-a"), {"metadata": {"name": "web"}})
    binding = {"metadata": {"name": "web", "annotations": {"a": "1"}}, "target": {"kind": "Node", "name": "n1"}}
    await server.create(binding_path("team-a", "web"), binding, msgspec.Raw)
    pod = await server.get(pod_path("team-a", "web"), dict[str, Any])
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("n1", {"a": "1"})
    with pytest.raises(Conflict, match="already assigned"):
        await server.create(binding_path("team-a", "web"), binding, msgspec.Raw)


async def test_an_event_is_written_as_kubernetes_spells_it(api: FakeApi, server: ApiServer) -> None:
    event = ObjectEvent(
        metadata=Meta(generate_name="n1.", namespace="default"),
        involved_object=ObjectReference(kind="Node", name="n1", uid="u"),
        reason="CardLost",
        message="card GPU-1 fell off the bus",
        type="Warning",
        action="Watch",
        event_time=micro_time(datetime(2026, 11, 21, tzinfo=UTC)),
        reporting_component="partage.dev/advertiser",
        reporting_instance="n1",
    )
    made = await server.create(events_path("default"), event, dict[str, Any])
    assert made["metadata"]["name"].startswith("n1.")
    assert msgspec.json.decode(api.asked[0].body) == {
        "metadata": {"generateName": "n1.", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "n1", "uid": "u"},
        "reason": "CardLost",
        "message": "card GPU-1 fell off the bus",
        "type": "Warning",
        "action": "Watch",
        "eventTime": "2026-11-21T00:00:00.000000Z",
        "reportingComponent": "partage.dev/advertiser",
        "reportingInstance": "n1",
    }


def test_times_are_utc_and_always_have_microseconds() -> None:
    moment = datetime(2026, 11, 21, 18, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    assert micro_time(moment) == "2026-11-21T16:00:00.000000Z"


async def test_an_answer_of_another_type_is_nonsense_that_names_the_path_to_it(api: FakeApi, server: ApiServer) -> None:
    api.objects.create(nodes_path(), {"metadata": {"name": "n1", "labels": {"a": 1}}})
    with pytest.raises(MalformedResponse, match=r"GET /api/v1/nodes/n1: .*\$\.metadata\.labels"):
        await server.get(node_path("n1"), Node)


async def test_who_asks_is_said_in_every_call() -> None:
    async with FakeApi() as api:
        a_node(api)
        api.accepts = {"Bearer good"}
        access = access_to(api.url, authorization="Bearer good")
        async with ApiServer(access, user_agent="partage-advertiser/0.1") as server:
            await server.get(node_path("n1"), Node)
            assert api.asked[0].headers["User-Agent"] == "partage-advertiser/0.1"


async def test_an_api_server_may_live_under_a_path() -> None:
    async with FakeApi() as api:
        api.expect(Say(b"{}"))
        async with ApiServer(access_to(f"{api.url}/k8s/clusters/c-1"), user_agent="t") as server:
            await server.get(node_path("n1"), Node)
            assert api.asked[0].path == "/k8s/clusters/c-1/api/v1/nodes/n1"


@pytest.mark.parametrize("of_client", [{"connections": 2}])
async def test_more_calls_than_connections_wait_for_one_another(api: FakeApi, server: ApiServer) -> None:
    a_node(api)
    api.expect(Hang(), times=5)
    calls = [asyncio.create_task(server.get(node_path("n1"), Node)) for _ in range(5)]
    await until(lambda: len(api.asked) == 2)
    await asyncio.sleep(0)
    assert len(api.asked) == 2
    while not all(call.done() for call in calls):
        api.release()
        await asyncio.sleep(0.005)
    assert all(call.result().metadata.name == "n1" for call in calls)


@pytest.mark.parametrize("of_client", [{"connections": 1}])
async def test_a_watch_takes_no_connection_from_calls(api: FakeApi, server: ApiServer) -> None:
    a_node(api)
    watches = [server.watch(nodes_path(), Node, since="1") for _ in range(3)]
    for watch in watches:
        await anext(watch)
    assert (await server.get(node_path("n1"), Node)).metadata.name == "n1"
    for watch in watches:
        await watch.aclose()
