"""Cordons, taints, selectors and node affinity: which nodes a pod may be on for what it says of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from unit.scheduler.objects_made import REQUIRED, node, pod
from unit.scheduler.placing import World

Json = Mapping[str, Any]
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def tolerating(**toleration: str) -> list[Json]:
    return [toleration]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_is_for_a_taint_or_not(toleration: dict[str, str], *, tolerated: bool) -> None:
    world = World(node("n", taints=(GPU,)))
    assert world.where(pod("p", tolerations=[toleration])) == ("n" if tolerated else "")


def test_of_taints_the_first_that_is_in_the_way_is_told() -> None:
    world = World(node("n", taints=({**GPU, "effect": "PreferNoSchedule"}, {"key": "a", "effect": "NoExecute"}, GPU)))
    assert world.why(pod("p")) == {"n": "node(s) had untolerated taint {a: }"}
    assert world.why(pod("p", tolerations=tolerating(key="a", operator="Exists"))) == {
        "n": "node(s) had untolerated taint {gpu: yes}"
    }


def test_a_taint_that_only_prefers_bars_nobody() -> None:
    assert World(node("n", taints=({**GPU, "effect": "PreferNoSchedule"},))).where(pod("p")) == "n"


def test_many_different_taints_are_told_as_one_reason() -> None:
    world = World(*(node(f"n{place}", taints=({**GPU, "value": str(place)},)) for place in range(20)))
    assert set(world.why(pod("p")).values()) == {"node(s) had untolerated taint(s)"}


def test_a_cordon_is_a_taint_that_can_be_tolerated() -> None:
    world = World(node("n", unschedulable=True))
    assert world.why(pod("p")) == {"n": "node(s) were unschedulable"}
    tolerant = tolerating(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule")
    assert world.where(pod("p", tolerations=tolerant)) == "n"
    world.put(node("n"))
    assert world.where(pod("p")) == "n"


def test_taints_that_come_and_go_are_followed() -> None:
    world = World(node("a"), node("b"))
    for value in map(str, range(300)):
        world.put(node("a", taints=({**GPU, "value": value},)))
        assert world.where(pod("p")) == "b"
    world.put(node("a"))
    assert world.where(pod("p")) == "a b"


def test_what_was_said_of_taints_is_said_anew_once_one_of_them_changes() -> None:
    world = World(node("a", taints=(GPU,)), node("b", taints=({**GPU, "value": "no"},)), node("c"))
    tolerant = pod("p", tolerations=tolerating(key="gpu", value="no"))
    assert world.where(tolerant) == "b c"
    world.put(node("a", taints=({**GPU, "value": "no"},)))
    world.put(node("c", taints=({"key": "k", "effect": "NoExecute"},)))
    assert world.where(tolerant) == "a b"
    world.put(node("b", unschedulable=True))
    assert world.where(tolerant) == "a"


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
        node("a", {"disk": "ssd", "cores": "4"}), node("b", {"disk": "nvme", "cores": "16"}), node("c", {"cores": "x"})
    )
    assert world.where(pod("p", affinity=required(term))) == nodes


def test_of_several_terms_one_must_hold_and_of_no_terms_none_does() -> None:
    world = World(node("a", {"disk": "ssd"}), node("b"), node("c", {"disk": "hdd"}))
    either = required(
        {"matchExpressions": [expression("In", "ssd")]}, {"matchExpressions": [expression("In", "hdd")]}, {}
    )
    assert world.where(pod("p", affinity=either)) == "a c"
    assert world.where(pod("p", affinity=required())) == ""


def test_selector_and_affinity_must_both_hold() -> None:
    world = World(node("a", {"disk": "ssd", "zone": "1"}), node("b", {"disk": "ssd"}), node("c", {"zone": "1"}))
    on_ssd = required({"matchExpressions": [expression("In", "ssd")]})
    both = pod("p", affinity=on_ssd, nodeSelector={"zone": "1"})
    assert world.where(both) == "a"
    assert world.why(both)["b"] == "node(s) didn't match Pod's node affinity/selector"


def test_labels_that_change_are_followed_though_the_question_is_the_same() -> None:
    world = World(node("a"), node("b", {"disk": "ssd"}))
    picky = pod("p", nodeSelector={"disk": "ssd"})
    assert world.where(picky) == "b"
    world.put(node("a", {"disk": "ssd"}))
    world.put(node("b", {"disk": "hdd"}))
    assert world.where(picky) == "a"
    world.remove("a")
    world.put(node("c", {"disk": "ssd"}))
    assert world.where(picky) == "c"


def test_a_pod_that_names_its_node_goes_there_alone() -> None:
    world = World(node("a"), node("b"))
    assert world.where(pod("p", nodeName="b")) == "b"
    assert world.why(pod("p", nodeName="b")) == {"a": "node(s) didn't match the requested node name"}
