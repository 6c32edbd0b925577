# pyright: reportPrivateUsage=false
"""Affinity and anti-affinity between pods: whom terms are about, in which places, in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from partage_plugins.cache import Cache
from partage_scheduler.objects import ApiPod
from unit.scheduler.objects_made import HOSTNAME, ZONE, Json, affine, apart, labelled, namespace, near, node, pod
from unit.scheduler.placing import World

FAR = "node(s) didn't match pod affinity rules"
CLOSE = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB, DB = {"app": "web"}, {"app": "db"}


def world() -> World:
    """Two nodes in one zone, one in another, one nowhere."""
    zones = [node(name, {ZONE: zone}) for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))]
    return World(*zones, node("nowhere"))


def test_a_pod_is_put_into_the_place_of_those_that_it_wants_near() -> None:
    there = world()
    there.on("a1", pod("web", WEB))
    asking = pod("p", affinity=affine(near(labelled(**WEB))))
    assert there.where(asking) == "a1 a2"
    assert there.why(asking) == {"b1": FAR, "nowhere": FAR}
    assert there.where(pod("p", affinity=affine(near(labelled(**WEB), HOSTNAME)))) == "a1"


def test_pods_that_are_being_deleted_still_count() -> None:
    there = world()
    there.on("a1", pod("web", WEB, going=True))
    assert there.where(pod("p", affinity=affine(near(labelled(**WEB))))) == "a1 a2"
    assert there.where(pod("p", affinity=apart(near(labelled(**WEB))))) == "b1 nowhere"


def test_the_first_of_a_group_may_open_any_place_and_the_others_follow() -> None:
    there = world()
    member = pod("first", WEB, affinity=affine(near(labelled(**WEB))))
    assert there.where(member) == "a1 a2 b1"
    there.on("b1", member)
    assert there.where(pod("second", WEB, affinity=affine(near(labelled(**WEB))))) == "b1"
    there.off("first")
    assert there.where(pod("second", WEB, affinity=affine(near(labelled(**WEB))))) == "a1 a2 b1"


def test_who_does_not_choose_itself_is_no_first() -> None:
    assert world().where(pod("p", DB, affinity=affine(near(labelled(**WEB))))) == ""
    elsewhere = near(labelled(**WEB), namespaces=["other"])
    assert world().where(pod("p", WEB, affinity=affine(elsewhere))) == ""


def test_one_that_all_terms_choose_is_needed_not_one_for_each_term() -> None:
    there = world()
    there.on("a1", pod("web", WEB))
    there.on("a2", pod("db", DB))
    both = affine(near(labelled(**WEB)), near({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, HOSTNAME))
    assert there.where(pod("p", affinity=both)) == "a1"
    neither = affine(near(labelled(**WEB)), near(labelled(**DB)))
    assert there.where(pod("p", affinity=neither)) == ""


def test_pods_that_are_where_the_label_is_lacking_are_in_no_place() -> None:
    there = world()
    there.on("nowhere", pod("web", WEB))
    asking = pod("p", WEB, affinity=affine(near(labelled(**WEB))))
    assert there.where(asking) == "a1 a2 b1", "so this is still the first of its group"
    assert there.where(pod("p", affinity=apart(near(labelled(**WEB))))) == "a1 a2 b1 nowhere"


def test_a_pod_is_kept_out_of_the_place_of_those_that_it_wants_apart() -> None:
    there = world()
    there.on("a1", pod("web", WEB))
    asking = pod("p", affinity=apart(near(labelled(**WEB))))
    assert there.why(asking) == {"a1": CLOSE, "a2": CLOSE}
    there.off("web")
    assert there.why(asking) == {}


def test_those_that_are_there_keep_others_out() -> None:
    there = world()
    there.on("a1", pod("shy", affinity=apart(near(labelled(**WEB)))))
    assert there.why(pod("web", WEB)) == {"a1": UNWELCOME, "a2": UNWELCOME}
    assert there.why(pod("db", DB)) == {}
    there.off("shy")
    assert there.why(pod("web", WEB)) == {}


def test_two_that_hold_the_same_term_must_both_go_before_it_is_over() -> None:
    there = world()
    for name in ("one", "two"):
        there.on("b1", pod(name, affinity=apart(near(labelled(**WEB)))))
    there.off("one")
    assert there.why(pod("web", WEB)) == {"b1": UNWELCOME}
    there.off("two")
    assert there.why(pod("web", WEB)) == {}


def test_replicas_that_want_apart_take_a_place_each() -> None:
    there = world()
    for name in ("r1", "r2"):
        replica = pod(name, WEB, affinity=apart(near(labelled(**WEB))))
        there.on(there.where(replica).split()[0], replica)
    assert there.where(pod("r3", WEB, affinity=apart(near(labelled(**WEB))))) == "nowhere"


@pytest.mark.parametrize(
    ("term", "about"),
    [
        ({}, "default"),
        ({"namespaces": ["other"]}, "other"),
        ({"namespaces": ["default", "other"]}, "default other"),
        ({"namespaceSelector": {}}, "default other third"),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, "other third"),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}, "namespaces": ["default"]}, "default other third"),
        ({"namespaceSelector": {"matchLabels": {"team": "blue"}}}, ""),
        ({"namespaceSelector": {"matchLabels": {"team": "blue"}}, "namespaces": []}, ""),
    ],
)
def test_a_term_is_about_some_namespaces(term: Json, about: str) -> None:
    spaces = ("default", "other", "third")
    found = []
    for space in spaces:
        there = world()
        there.predicates.put_namespace(namespace("other", team="red"))
        there.predicates.put_namespace(namespace("third", team="red"))
        there.on("a1", pod("web", WEB, namespace=space))
        if there.why(pod("p", affinity=apart(near(labelled(**WEB), **term)))):
            found.append(space)
    assert " ".join(found) == about


def test_a_namespace_that_gets_other_labels_is_chosen_or_not_at_once_in_both_directions() -> None:
    there = world()
    reds = near(labelled(**WEB), namespaceSelector={"matchLabels": {"team": "red"}})
    there.on("a1", pod("web", WEB, namespace="other"))
    there.on("b1", pod("shy", affinity=apart(reds)))
    asking, coming = pod("p", affinity=apart(reds)), pod("new", WEB, namespace="other")
    assert (there.why(asking), there.why(coming)) == ({}, {})
    there.predicates.put_namespace(namespace("other", team="red"))
    assert (there.why(asking), there.why(coming)) == ({"a1": CLOSE, "a2": CLOSE}, {"b1": UNWELCOME})
    there.predicates.remove_namespace("other")
    assert (there.why(asking), there.why(coming)) == ({}, {})


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (None, ""),
        ({}, "old new other"),
        (labelled(app="web"), "old new"),
        ({"matchExpressions": [{"key": "rev", "operator": "In", "values": ["2", "3"]}]}, "new"),
        ({"matchExpressions": [{"key": "rev", "operator": "NotIn", "values": ["2"]}]}, "old other"),
        ({"matchExpressions": [{"key": "rev", "operator": "Exists"}]}, "old new"),
        ({"matchExpressions": [{"key": "rev", "operator": "DoesNotExist"}]}, "other"),
    ],
)
def test_a_selector_chooses_by_labels_none_of_them_nobody_an_empty_one_everybody(
    selector: Json | None, chosen: str
) -> None:
    for name, labels in {"old": {**WEB, "rev": "1"}, "new": {**WEB, "rev": "2"}, "other": DB}.items():
        there = world()
        there.on("a1", pod(name, labels))
        assert bool(there.why(pod("p", affinity=apart(near(selector))))) == (name in chosen.split())


def of_revision(revision: str, **term: Any) -> ApiPod:
    return pod("p", {**WEB, "rev": revision}, affinity=apart(near(labelled(**WEB), **term)))


def test_own_values_of_labels_narrow_a_term() -> None:
    there = world()
    there.on("a1", pod("old", {**WEB, "rev": "1"}))
    same, other = {"matchLabelKeys": ["rev"]}, {"mismatchLabelKeys": ["rev"]}
    assert there.where(of_revision("1", **same)) == "b1 nowhere"
    assert there.where(of_revision("2", **same)) == "a1 a2 b1 nowhere"
    assert there.where(of_revision("1", **other)) == "a1 a2 b1 nowhere"
    assert there.where(of_revision("2", **other)) == "b1 nowhere"


def test_values_that_the_api_server_put_in_stay_though_the_pods_labels_change_later() -> None:
    there = world()
    there.on("a1", pod("old", {**WEB, "rev": "1"}))
    put_in = {**labelled(**WEB), "matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
    changed = pod("p", {**WEB, "rev": "2"}, affinity=apart(near(put_in, matchLabelKeys=["rev"])))
    assert there.where(changed) == "b1 nowhere"


def test_labels_of_pods_that_change_are_followed() -> None:
    there = world()
    asking = pod("p", affinity=apart(near(labelled(**WEB))))
    there.on("a1", pod("x", DB))
    assert there.why(asking) == {}
    there.on("a1", pod("x", WEB))
    assert there.why(asking) == {"a1": CLOSE, "a2": CLOSE}


def test_nodes_that_move_take_their_pods_along() -> None:
    there = world()
    there.on("a1", pod("web", WEB))
    asking = pod("p", affinity=affine(near(labelled(**WEB))))
    there.put(node("a1", {ZONE: "b"}))
    assert there.where(asking) == "a1 b1"
    there.remove("a1")
    assert there.where(asking) == ""


def test_groups_that_were_forgotten_for_others_are_gathered_again() -> None:
    there = world()
    kinds = there.predicates._kinds
    kinds._kept = Cache(90_000)
    there.on("a1", *(pod(f"w{number}", {"app": f"app-{number}"}) for number in range(9)))
    for _ in range(2):
        for number in range(9):
            asking = pod("p", affinity=affine(near(labelled(app=f"app-{number}"))))
            assert there.where(asking) == "a1 a2"
            there.on("b1", pod("more", {"app": f"app-{number}"}))
            assert there.where(asking) == "a1 a2 b1"
            there.off("more")
    assert 2 <= len(kinds._groups) < 9
    assert kinds.bytes <= 90_000
