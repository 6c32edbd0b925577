# pyright: reportPrivateUsage=false
"""Affinity and anti-affinity between pods: whom terms are about, in which places, in both directions."""

from __future__ import annotations

from partage_plugins.cache import Cache
from support.objects import HOSTNAME, ZONE, affine, apart, labelled, namespace, near, node, pod
from unit.scheduler.placing import World

FAR = "node(s) didn't match pod affinity rules"
CLOSE = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB, DB = {"app": "web"}, {"app": "db"}


def world() -> World:
    """Two nodes in one zone, one in another, one nowhere."""
    zones = [node(name, labels={ZONE: zone}) for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))]
    return World(*zones, node("nowhere"))


def test_a_pod_is_put_into_the_place_of_those_that_it_wants_near() -> None:
    there = world()
    there.on("a1", pod("web", WEB))
    asking = pod("p", affinity=affine(near(labelled(**WEB))))
    assert there.where(asking) == "a1 a2"
    assert there.why(asking) == {"b1": FAR, "nowhere": FAR}
    assert there.where(pod("p", affinity=affine(near(labelled(**WEB), HOSTNAME)))) == "a1"


def test_the_first_of_a_group_may_open_any_place_and_the_others_follow() -> None:
    there = world()
    member = pod("first", WEB, affinity=affine(near(labelled(**WEB))))
    assert there.where(member) == "a1 a2 b1"
    there.on("b1", member)
    assert there.where(pod("second", WEB, affinity=affine(near(labelled(**WEB))))) == "b1"
    there.off("first")
    assert there.where(pod("second", WEB, affinity=affine(near(labelled(**WEB))))) == "a1 a2 b1"


def test_those_that_are_there_keep_others_out() -> None:
    there = world()
    there.on("a1", pod("shy", affinity=apart(near(labelled(**WEB)))))
    assert there.why(pod("web", WEB)) == {"a1": UNWELCOME, "a2": UNWELCOME}
    assert there.why(pod("db", DB)) == {}
    there.off("shy")
    assert there.why(pod("web", WEB)) == {}


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


def test_values_that_the_api_server_put_in_stay_though_the_pods_labels_change_later() -> None:
    there = world()
    there.on("a1", pod("old", {**WEB, "rev": "1"}))
    put_in = {**labelled(**WEB), "matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
    changed = pod("p", {**WEB, "rev": "2"}, affinity=apart(near(put_in, matchLabelKeys=["rev"])))
    assert there.where(changed) == "b1 nowhere"


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
