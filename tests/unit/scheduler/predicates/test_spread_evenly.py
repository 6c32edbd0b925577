"""Topology spread that must be kept: who is counted, over which nodes, and how uneven it may become."""

from __future__ import annotations

from typing import Any

import pytest

from partage_scheduler.objects import ApiPod
from unit.scheduler.objects_made import HOSTNAME, ZONE, Json, labelled, node, pod
from unit.scheduler.placing import World

UNEVEN = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = {"app": "web"}


def constraint(skew: int = 1, key: str = ZONE, **more: Any) -> Json:
    selector = {"labelSelector": labelled(**WEB)}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}


def web(name: str, *constraints: Json, labels: Json | None = None, **spec: Any) -> ApiPod:
    return pod(name, labels or WEB, topologySpreadConstraints=list(constraints), **spec)


def world(*counts: int, **labels: str) -> World:
    """Zones with so many pods each, on one node each."""
    there = World(*(node(f"n{place}", {ZONE: f"z{place}", **labels}) for place in range(len(counts))))
    for place, count in enumerate(counts):
        there.on(f"n{place}", *(pod(f"there-{place}-{number}", WEB) for number in range(count)))
    return there


@pytest.mark.parametrize(
    ("counts", "skew", "where"),
    [
        ((0, 0, 0), 1, "n0 n1 n2"),
        ((1, 0, 0), 1, "n1 n2"),
        ((1, 1, 0), 1, "n2"),
        ((1, 1, 1), 1, "n0 n1 n2"),
        ((2, 1, 0), 2, "n1 n2"),
        ((3, 0, 1), 3, "n1 n2"),
        ((5, 0, 0), 1, "n1 n2"),
    ],
)
def test_no_place_may_have_more_than_the_emptiest_by_too_many(counts: tuple[int, ...], skew: int, where: str) -> None:
    assert world(*counts).where(web("p", constraint(skew))) == where


def test_a_pod_that_is_not_chosen_itself_adds_nothing() -> None:
    assert world(1, 0).where(web("p", constraint(), labels={"app": "db"})) == "n0 n1"
    assert world(2, 0).where(web("p", constraint(), labels={"app": "db"})) == "n1"


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    """As kube-scheduler has it: what is empty selects everything elsewhere."""
    assert world(5, 0).where(web("p", constraint(labelSelector={}))) == "n0 n1"
    assert world(5, 0).where(web("p", constraint(labelSelector={}, matchLabelKeys=["app"]))) == "n1"


def test_pods_that_are_being_deleted_and_those_of_other_namespaces_do_not_count() -> None:
    there = world(0, 0)
    there.on("n0", pod("going", WEB, going=True), pod("foreign", WEB, namespace="other"))
    assert there.where(web("p", constraint())) == "n0 n1"


def test_a_node_without_the_label_is_no_place_and_no_choice() -> None:
    there = world(1, 0)
    there.put(node("plain"))
    assert there.why(web("p", constraint())) == {"n0": UNEVEN, "plain": UNLABELLED}


@pytest.mark.parametrize(("least", "where"), [(2, "n0 n1"), (3, ""), (1, "n0 n1")])
def test_while_there_are_fewer_places_than_there_should_be_the_emptiest_counts_as_empty(least: int, where: str) -> None:
    assert world(1, 1).where(web("p", constraint(minDomains=least))) == where


def test_places_that_the_pod_cannot_choose_do_not_count_unless_it_says_so() -> None:
    there = world(1, 1, 0)
    there.put(node("n2", {ZONE: "z2", "old": "yes"}))
    picky: Json = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}]
        }
    }
    affinity = {"nodeAffinity": picky}
    assert there.where(web("p", constraint(), affinity=affinity)) == "n0 n1"
    assert there.where(web("p", constraint(nodeAffinityPolicy="Ignore"), affinity=affinity)) == ""


def test_tainted_places_count_unless_it_says_otherwise() -> None:
    there = world(1, 1, 0)
    there.put(node("n2", {ZONE: "z2"}, taints=({"key": "k", "effect": "NoSchedule"},)))
    assert there.where(web("p", constraint())) == ""
    honouring = constraint(nodeTaintsPolicy="Honor")
    assert there.where(web("p", honouring)) == "n0 n1"
    assert there.where(web("p", honouring, tolerations=[{"operator": "Exists"}])) == "n2"
    there.put(node("n2", {ZONE: "z2"}))
    assert there.where(web("p", honouring)) == "n2"


def test_own_values_of_labels_narrow_who_is_counted() -> None:
    there = world(0, 0)
    there.on("n0", pod("old", {**WEB, "rev": "1"}))
    assert there.where(web("p", constraint(matchLabelKeys=["rev"]), labels={**WEB, "rev": "1"})) == "n1"
    assert there.where(web("p", constraint(matchLabelKeys=["rev"]), labels={**WEB, "rev": "2"})) == "n0 n1"


def test_all_constraints_must_hold_and_nodes_need_all_their_labels_to_count() -> None:
    there = World(node("a1", {ZONE: "a"}), node("a2", {ZONE: "a"}), node("b1", {ZONE: "b"}))
    there.on("a1", pod("one", WEB))
    there.on("b1", pod("two", WEB))
    assert there.where(web("p", constraint(), constraint(key=HOSTNAME))) == "a2"
    there.on("a2", pod("three", WEB))
    assert there.where(web("p", constraint(), constraint(key=HOSTNAME))) == "b1"


def test_a_selector_that_is_not_there_counts_nobody() -> None:
    assert (
        world(3, 0).where(web("p", {key: value for key, value in constraint().items() if key != "labelSelector"}))
        == "n0 n1"
    )


def test_what_is_only_wished_for_bars_nobody() -> None:
    assert world(5, 0).where(web("p", constraint(whenUnsatisfiable="ScheduleAnyway"))) == "n0 n1"


def test_pods_come_and_go_and_it_is_even_again() -> None:
    there = world(1, 0)
    asking = web("p", constraint())
    assert there.where(asking) == "n1"
    there.on("n1", pod("more", WEB))
    assert there.where(asking) == "n0 n1"
    there.off("there-0-0")
    assert there.where(asking) == "n0"
