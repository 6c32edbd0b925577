"""The fake API server's own promises: what other tests build on must be as hard as the real one, and no harder."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Conflict,
    Deleted,
    Listed,
    Meta,
    Node,
    NotFound,
    ServerFailed,
    Unreachable,
    binding_path,
    follow,
    node_path,
    nodes_path,
    pod_path,
    pod_status_path,
)
from partage_base.kube import lists as listing_module
from support.fake_api import FakeApi, Late, Lists, Refuse
from support.fake_faults import Storm
from support.kube import told, until

PODS = "/api/v1/namespaces/team/pods"


class Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""


class Status(msgspec.Struct, rename="camel"):
    conditions: list[Condition] = []
    nominated_node_name: str = ""


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def a_pod(api: FakeApi, **more: object) -> str:
    spec, status, meta = more.get("spec", {}), more.get("status", {}), more.get("metadata", {})
    assert isinstance(meta, dict)
    made = api.objects.create(
        PODS, {"metadata": {"name": "p", "namespace": "team", **meta}, "spec": spec, "status": status}
    )
    return str(made["metadata"]["uid"])


def binding(uid: str, node: str = "n1") -> dict[str, object]:
    meta = {"name": "p", "namespace": "team", "uid": uid, "annotations": {"a": "new"}}
    return {"metadata": meta, "target": {"kind": "Node", "name": node}}


def test_a_binding_sets_node_annotations_and_condition_in_one_step() -> None:
    async def story(api: FakeApi, server: ApiServer) -> None:
        uid = a_pod(api, metadata={"annotations": {"a": "old", "b": "kept"}}, status={"nominatedNodeName": "n9"})
        before = api.objects.version
        await server.create(binding_path("team", "p"), binding(uid), msgspec.Raw)
        pod = await server.get(pod_path("team", "p"), Pod)
        assert api.objects.version == before + 1
        assert pod.spec.node_name == "n1"
        assert pod.metadata.annotations == {"a": "new", "b": "kept"}
        assert [(each.type, each.status) for each in pod.status.conditions] == [("PodScheduled", "True")]
        assert not pod.status.nominated_node_name

    told(story)


@pytest.mark.parametrize(
    ("spec", "meta", "uid", "why"),
    [
        ({"nodeName": "n2"}, {}, None, 'already assigned to node "n2"'),
        ({}, {}, "another", "UID in precondition: another"),
        ({"schedulingGates": [{"name": "x/y"}]}, {}, None, "schedulingGates"),
        ({}, {"deletionTimestamp": "2026-11-22T00:00:00Z"}, None, "being deleted"),
    ],
)
def test_a_binding_that_can_not_be_is_a_conflict(
    spec: dict[str, object], meta: dict[str, object], uid: str | None, why: str
) -> None:
    async def story(api: FakeApi, server: ApiServer) -> None:
        made = a_pod(api, spec=spec, metadata=meta)
        with pytest.raises(Conflict, match=why):
            await server.create(binding_path("team", "p"), binding(uid or made), msgspec.Raw)

    told(story)


def test_a_pod_that_is_gone_is_not_bound() -> None:
    async def story(_: FakeApi, server: ApiServer) -> None:
        with pytest.raises(NotFound):
            await server.create(binding_path("team", "p"), binding("1"), msgspec.Raw)

    told(story)


def test_a_strategic_patch_of_the_status_knows_conditions_by_their_type() -> None:
    async def story(api: FakeApi, server: ApiServer) -> None:
        a_pod(api, status={"conditions": [{"type": "Ready", "status": "False"}]})
        body = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}
        pod = await server.patch(pod_status_path("team", "p"), body, Pod, how="strategic")
        assert [each.type for each in pod.status.conditions] == ["Ready", "PodScheduled"]

    told(story)


def test_an_error_after_success_has_done_it() -> None:
    async def story(api: FakeApi, server: ApiServer) -> None:
        uid = a_pod(api)
        api.expect(Refuse(504, after_success=True), method="POST")
        with pytest.raises(ServerFailed):
            await server.create(binding_path("team", "p"), binding(uid), msgspec.Raw)
        assert (await server.get(pod_path("team", "p"), Pod)).spec.node_name == "n1"

    told(story)


def test_what_is_late_is_done_after_the_client_gave_up() -> None:
    async def story(api: FakeApi, server: ApiServer) -> None:
        uid = a_pod(api)
        api.expect(Late(0.2), method="POST")
        with pytest.raises(Unreachable):
            await server.create(binding_path("team", "p"), binding(uid), msgspec.Raw)
        assert not (await server.get(pod_path("team", "p"), Pod)).spec.node_name
        await until(lambda: api.objects.get(pod_path("team", "p"))["spec"].get("nodeName") == "n1")

    told(story, deadline_s=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "lists"), [*enumerate(Lists)])
def test_who_follows_through_a_storm_knows_in_the_end_what_there_is(
    seed: int, lists: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "SILENT_S", 0.05)

    async def story(api: FakeApi, server: ApiServer) -> None:
        api.lists = lists
        api.weather = storm = Storm(seed, strength=0.3)
        known: dict[str, Node] = {}
        backoff = Backoff(first_s=0.01, most_s=0.02, random=lambda: 0.5)
        following = asyncio.create_task(_follow(server, known, backoff))
        chance = random.Random(seed)  # noqa: S311
        for _ in range(150):
            _change(api, chance)
            await asyncio.sleep(0.002)
        storm.strength = 0.0
        await until(lambda: {name: node.metadata.labels for name, node in known.items()} == _there(api))
        following.cancel()

    told(story)


def _change(api: FakeApi, chance: random.Random) -> None:
    path = node_path(f"n{chance.randrange(5)}")
    held = [each["metadata"]["name"] for each in api.objects.select(nodes_path(), {})]
    if path.rpartition("/")[2] not in held:
        api.objects.create(nodes_path(), {"metadata": {"name": path.rpartition("/")[2], "labels": {}}})
    elif chance.random() < 0.2:
        api.objects.delete(path)
    else:
        api.objects.patch(path, {"metadata": {"labels": {"x": str(chance.random())}}})


def _there(api: FakeApi) -> dict[str, object]:
    return {each["metadata"]["name"]: each["metadata"]["labels"] for each in api.objects.select(nodes_path(), {})}


async def _follow(server: ApiServer, known: dict[str, Node], backoff: Backoff) -> None:
    gone: dict[str, int] = {}
    async for seen in follow(server, nodes_path(), Node, backoff=backoff):
        match seen:
            case Listed(items):
                known.clear()
                known.update({item.metadata.name: item for item in items})
            case Changed(item, version):
                held = known.get(item.metadata.name)
                newest = max(int(held.metadata.resource_version) if held else 0, gone.get(item.metadata.uid, 0))
                if int(version) > newest:
                    known[item.metadata.name] = item
            case Deleted(item, version):
                gone[item.metadata.uid] = int(version)
                if (held := known.get(item.metadata.name)) and held.metadata.uid == item.metadata.uid:
                    del known[item.metadata.name]
            case _:
                pass
