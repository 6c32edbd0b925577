"""What changed on pods of the node is handed to crishim, as it stands, and taken away with its pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partage_advertiser.resizes import ResizeFiles
from partage_base.daemon.web import Response
from partage_base.kube import ApiServer
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from partage_plugins.vocabulary.places import RESIZES_FOLDER
from support.fake_api import FakeApi, Refuse
from support.objects import pod_body
from support.scheduling import PODS


class Broker:
    """Tells of pods as the broker of a node does."""

    def __init__(self) -> None:
        self.pods: list[dict[str, str]] = []
        self.status = 200

    async def __call__(self) -> Response:
        containers = [{"key": "k", "pod": pod, "container": "main"} for pod in self.pods]
        claim = {"pod": {"namespace": "team", "name": "claim", "uid": "c"}, "is_claim": True}
        return Response(self.status, json.dumps({"answer": "told", "containers": [*containers, claim]}).encode())


class Node:
    def __init__(self, api: FakeApi, server: ApiServer, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api, self.broker, self.folder = api, Broker(), root / RESIZES_FOLDER
        self.files = ResizeFiles(server, root)
        monkeypatch.setattr(self.files, "_broker", self.broker)

    def runs(self, name: str) -> str:
        found = self.api.objects.create(PODS, pod_body(name, node="n1"))["metadata"]
        self.broker.pods.append({each: found[each] for each in ("namespace", "name", "uid")})
        return str(found["uid"])

    def says(self, name: str, text: str) -> None:
        notes = {ALLOCATION: text, SIGNATURE: "k:s"}
        self.api.objects.patch(f"{PODS}/{name}", {"metadata": {"annotations": notes}})

    @property
    def handed(self) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text())["allocation"] for path in self.folder.glob("*.json")}


@pytest.fixture
def node(api: FakeApi, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(api, server, tmp_path, monkeypatch)


async def test_only_what_was_resized_is_handed_over_and_each_change_of_it(node: Node) -> None:
    uid, _ = node.runs("p"), node.runs("q")
    node.says("p", '{"gen":1}')
    node.says("q", "{")
    await node.files.look()
    assert not node.folder.exists()
    for text in ('{"gen":2}', '{"gen":3}'):
        node.says("p", text)
        await node.files.look()
        assert node.handed == {uid: text}


async def test_a_file_goes_with_its_pod_and_stays_while_nobody_answers(node: Node) -> None:
    uid = node.runs("p")
    node.says("p", '{"gen":2}')
    await node.files.look()
    node.broker.status = 503
    await node.files.look()
    node.broker.status = 200
    node.api.expect(Refuse(500), method="GET", times=1)
    await node.files.look()
    assert set(node.handed) == {uid}
    node.broker.pods.clear()
    await node.files.look()
    assert not node.folder.exists()


async def test_another_pod_of_that_name_is_not_meant(node: Node) -> None:
    node.runs("p")
    node.says("p", '{"gen":2}')
    node.broker.pods[0]["uid"] = "earlier"
    await node.files.look()
    assert not node.handed
