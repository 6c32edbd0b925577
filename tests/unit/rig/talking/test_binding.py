"""What a Binding says, and what is never sent because the API server would take it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from rig.talking.api import Api
from rig.talking.binding import MOST_BYTES, bind, binding
from rig.talking.pods import Pod
from rig.talking.resources import Json
from rig.talking.speaker import Speaker


class Recorder:
    """Takes the place of an Api."""

    def __init__(self) -> None:
        self.created: list[tuple[str, Json]] = []

    def create(self, path: str, body: Json) -> Json:
        self.created.append((path, body))
        return {}


def a_pod(**annotations: str) -> Pod:
    metadata = {"namespace": "team-a", "name": "web", "uid": "u1", "annotations": annotations}
    return Pod(cast("Speaker", None), {"metadata": metadata, "spec": {}})


def sent(pod: Pod, annotations: dict[str, str]) -> list[tuple[str, Json]]:
    recorder = Recorder()
    bind(cast("Api", recorder), pod, "n1", annotations)
    return recorder.created


def test_one_request_has_the_node_the_uid_and_the_annotations() -> None:
    ((path, body),) = sent(a_pod(), {ALLOCATION: "{}", SIGNATURE: "s"})
    assert path == "/api/v1/namespaces/team-a/pods/web/binding"
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert body["metadata"]["uid"] == "u1"
    assert body["metadata"]["annotations"] == {ALLOCATION: "{}", SIGNATURE: "s"}
    assert body == binding(a_pod(), "n1", {ALLOCATION: "{}", SIGNATURE: "s"})


@pytest.mark.parametrize("key", ["", "no key", "a/b/c", "-a", "a/", "/a", "a" * 64, "A.example/b", "a\n"])
def test_a_bad_key_is_never_sent(key: str) -> None:
    with pytest.raises(ValueError, match="stuck for good"):
        sent(a_pod(), {key: "x"})


def test_the_users_own_annotations_count_towards_the_limit() -> None:
    room = MOST_BYTES - len("theirs") - len("ours") - 1000
    assert sent(a_pod(theirs="x" * 1000), {"ours": "x" * room})
    with pytest.raises(ValueError, match=f"{MOST_BYTES + 1} bytes"):
        sent(a_pod(theirs="x" * 1001), {"ours": "x" * room})


def test_an_annotation_that_is_overwritten_counts_once() -> None:
    body: Any = sent(a_pod(ours="x" * MOST_BYTES), {"ours": "y"})
    assert body
