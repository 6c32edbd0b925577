"""Two clusters are compared by their objects' content, without what the API server itself adds."""

from __future__ import annotations

from typing import Any

from support import contents


def an_object(kind: str = "Role", **said: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "x"}, **said}


def lines(*objects: dict[str, Any]) -> set[str]:
    return set(contents.lines(objects))


def test_another_rule_of_an_object_of_the_same_name_is_seen() -> None:
    one, other = (lines(an_object(rules=[{"verbs": verbs}])) for verbs in (["get"], ["get", "list"]))
    assert other - one == {'Role x a .rules[0].verbs[1]="list"'}


def test_a_label_that_is_left_is_seen() -> None:
    left = an_object()
    left["metadata"]["labels"] = {"partage.dev/install": "off"}
    assert lines(left) - lines(an_object()) == {'Role x a .metadata.labels.partage.dev/install="off"'}


def test_what_the_cluster_writes_by_itself_is_not_told() -> None:
    written = an_object(status={"phase": "Active"})
    written["metadata"] |= {"uid": "1", "resourceVersion": "7", "generation": 2, "creationTimestamp": "now"}
    assert lines(written) == lines(an_object())
    assert lines(an_object("Lease", spec={"renewTime": "now"})) == {"Lease x a"}


def test_an_object_that_says_nothing_is_told() -> None:
    assert lines({"kind": "Namespace", "metadata": {"name": "left"}})
