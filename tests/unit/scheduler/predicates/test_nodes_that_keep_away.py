"""Cordons, taints, selectors and node affinity: which nodes a pod may be on for what it says of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.objects import REQUIRED, node, pod
from unit.scheduler.placing import World

Json = Mapping[str, Any]
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def tolerating(**toleration: str) -> list[Json]:
    return [toleration]


def test_of_taints_the_first_that_is_in_the_way_is_told() -> None:
    world = World(node("n", taints=({**GPU, "effect": "PreferNoSchedule"}, {"key": "a", "effect": "NoExecute"}, GPU)))
    assert world.why(pod("p")) == {"n": "node(s) had untolerated taint {a: }"}
    assert world.why(pod("p", tolerations=tolerating(key="a", operator="Exists"))) == {
        "n": "node(s) had untolerated taint {gpu: yes}"
    }


def test_many_different_taints_are_told_as_one_reason() -> None:
    world = World(*(node(f"n{place}", taints=({**GPU, "value": str(place)},)) for place in range(20)))
    assert set(world.why(pod("p")).values()) == {"node(s) had untolerated taint(s)"}


def test_taints_that_come_and_go_are_followed() -> None:
    world = World(node("a"), node("b"))
    for value in map(str, range(300)):
        world.put(node("a", taints=({**GPU, "value": value},)))
        assert world.where(pod("p")) == "b"
    world.put(node("a"))
    assert world.where(pod("p")) == "a b"


def required(*terms: Json) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def expression(operator: str, *values: str, key: str = "disk") -> Json:
    return {"key": key, "operator": operator, **({"values": values} if values else {})}


@pytest.mark.parametrize(
    ("term", "nodes"),
    [
        ({"matchExpressions": [expression("In", "ssd", "nvme")]}, "a b"),
        ({"matchExpressions": [expression("NotIn", "ssd")]}, "b c"),
        ({"matchExpressions": [expression("Exists")]}, "a b"),
        ({"matchExpressions": [expression("DoesNotExist")]}, "c"),
        ({"matchExpressions": [expression("Gt", "8", key="cores")]}, "b"),
        ({"matchExpressions": [expression("Lt", "8", key="cores")]}, "a"),
        ({"matchExpressions": [expression("Gt", "many", key="cores")]}, ""),
        ({"matchExpressions": [expression("Gt", "1_0", key="cores")]}, ""),
        ({"matchExpressions": [expression("In", "ssd"), expression("Gt", "8", key="cores")]}, ""),
        ({"matchFields": [expression("In", "b", key="metadata.name")]}, "b"),
        ({"matchFields": [expression("NotIn", "b", key="metadata.name")]}, "a c"),
        ({"matchFields": [expression("In", "gone", key="metadata.name")]}, ""),
        ({}, ""),
    ],
)
def test_all_expressions_of_a_term_must_hold(term: Json, nodes: str) -> None:
    world = World(
        node("a", labels={"disk": "ssd", "cores": "4"}),
        node("b", labels={"disk": "nvme", "cores": "16"}),
        node("c", labels={"cores": "x"}),
    )
    assert world.where(pod("p", affinity=required(term))) == nodes


def test_a_pod_that_names_its_node_goes_there_alone() -> None:
    world = World(node("a"), node("b"))
    assert world.where(pod("p", nodeName="b")) == "b"
    assert world.why(pod("p", nodeName="b")) == {"a": "node(s) didn't match the requested node name"}
