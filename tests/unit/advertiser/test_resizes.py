"""Changed allocations of the node's pods are handed to crishim unchanged, and removed with their pods."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from partage_advertiser.resizes import MOST_REPORTED_BYTES, ResizeFiles, suspension_reports
from partage_base.kube import ApiServer, lease_path, leases_path
from partage_plugins.api.keys import ALLOCATION, RESIZED_PODS, SIGNATURE
from partage_plugins.api.places import RESIZES_FOLDER, SUSPENDED_FILE
from support.fake_api import FakeApi, Refuse
from support.kube import beside, until
from support.objects import pod_body
from support.scheduling import PODS

SYSTEM = "partage-system"
LEASE = lease_path(SYSTEM, "n1")


class Node:
    """A node whose Lease names its resized pods, as the scheduler writes it."""

    def __init__(self, api: FakeApi, root: Path) -> None:
        self.api, self.folder = api, root / RESIZES_FOLDER
        self.named: dict[str, dict[str, object]] = {}
        api.objects.create(leases_path(SYSTEM), {"metadata": {"name": "n1"}})

    def runs(self, name: str) -> str:
        return str(self.api.objects.create(PODS, pod_body(name, node="n1"))["metadata"]["uid"])

    def resized(self, name: str, uid: str, gen: int) -> None:
        notes = {ALLOCATION: f'{{"gen":{gen}}}', SIGNATURE: "k:s"}
        self.api.objects.patch(f"{PODS}/{name}", {"metadata": {"annotations": notes}})
        self.named[uid] = {"namespace": "team", "name": name, "gen": gen}
        self.say(json.dumps(self.named))

    def say(self, text: str | None) -> None:
        self.api.objects.patch(LEASE, {"metadata": {"annotations": {RESIZED_PODS: text}}})

    def beat(self) -> None:
        self.api.objects.patch(LEASE, {"spec": {"renewTime": str(self.api.objects.version)}})

    @property
    def handed(self) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text())["allocation"] for path in self.folder.glob("*.json")}

    def asked_about_pods(self) -> int:
        return sum(each.path.startswith(PODS) for each in self.api.asked)


@pytest.fixture
async def node(api: FakeApi, server: ApiServer, tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(api, tmp_path)
    async with beside(ResizeFiles(server, tmp_path, namespace=SYSTEM, node="n1").run()):
        yield node


async def test_each_change_is_handed_over_and_asked_about_once_however_often_the_node_beats(node: Node) -> None:
    uid, _ = node.runs("p"), node.runs("q")
    for gen in (2, 3):
        node.resized("p", uid, gen)
        await until(lambda: node.handed == {uid: f'{{"gen":{gen}}}'})  # noqa: B023  it is over then
    for _ in range(3):
        node.beat()
    later = node.runs("r")
    node.resized("r", later, 2)
    await until(lambda: later in node.handed)
    assert node.asked_about_pods() == 3


async def test_a_file_goes_with_its_pod_and_what_fails_is_tried_with_the_next_beat(node: Node) -> None:
    uid, other = node.runs("p"), node.runs("q")
    node.api.expect(Refuse(500), method="GET", under=f"{PODS}/p", times=1)
    node.resized("p", uid, 2)
    node.resized("q", other, 2)
    await until(lambda: other in node.handed)
    node.beat()
    await until(lambda: node.handed.keys() == {uid, other})
    node.say("{")
    node.beat()
    node.named.pop(uid)
    node.say(json.dumps(node.named))
    await until(lambda: node.handed.keys() == {other})
    node.say(None)
    await until(lambda: not node.folder.exists())


async def test_another_pod_of_that_name_is_not_meant(node: Node) -> None:
    uid = node.runs("q")
    node.runs("p")
    node.resized("p", "earlier", 2)
    node.resized("q", uid, 2)
    await until(lambda: uid in node.handed)
    assert node.handed.keys() == {uid}


async def test_an_allocation_that_is_not_on_its_pod_is_asked_for_with_each_beat(node: Node) -> None:
    uid = node.runs("p")
    node.named[uid] = {"namespace": "team", "name": "p", "gen": 2}
    node.say(json.dumps(node.named))
    await until(lambda: node.asked_about_pods() == 1)
    node.api.objects.patch(f"{PODS}/p", {"metadata": {"annotations": {ALLOCATION: '{"gen":2}', SIGNATURE: "k:s"}}})
    node.beat()
    await until(lambda: node.handed == {uid: '{"gen":2}'})


def test_reports_on_suspended_pods_are_read_and_damaged_ones_are_none(tmp_path: Path) -> None:
    path = tmp_path / SUSPENDED_FILE
    assert suspension_reports(tmp_path) == ""
    path.parent.mkdir(parents=True)
    for text, found in (
        (
            '{"b":{"gen":3,"why":"no"},"a":{"gen":2,"is_done":true}}',
            '{"a":{"gen":2,"is_done":true},"b":{"gen":3,"why":"no"}}',
        ),
        ("{}", ""),
        ("{", ""),
        ('{"a":{"gen":"2"}}', ""),
    ):
        path.write_text(text)
        assert suspension_reports(tmp_path) == found


def test_reports_never_make_the_heartbeat_too_large(tmp_path: Path) -> None:
    path = tmp_path / SUSPENDED_FILE
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({f"uid-{number:04}": {"gen": 2, "why": "w" * 400} for number in range(500)}))
    text = suspension_reports(tmp_path)
    assert len(text) <= MOST_REPORTED_BYTES
    assert len(json.loads(text)) > 100
