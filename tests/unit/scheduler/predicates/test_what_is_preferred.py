"""Preferences exclude no node; they rank some above others."""

from __future__ import annotations

from typing import Any

from partage_scheduler.objects import ApiPod
from support.objects import HOSTNAME, PREFERRED, ZONE, Json, affine, labelled, near, node, pod, read
from unit.scheduler.placing import World

WEB = {"app": "web"}


def best(there: World, asking: ApiPod) -> str:
    """The nodes with the highest preference."""
    liked = there.liked(asking)
    assert liked is not None
    most = max(liked.values())
    return " ".join(name for name, score in liked.items() if score == most)


def world() -> World:
    return World(
        node("a1", labels={ZONE: "a", "disk": "ssd"}),
        node("a2", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b", "disk": "hdd"}),
    )


def liking(weight: int, term: Json) -> Json:
    return {"weight": weight, "podAffinityTerm": term}


def test_of_a_pod_that_prefers_nothing_nothing_is_said() -> None:
    assert world().liked(pod("p")) is None


def test_preferred_node_affinity_adds_up() -> None:
    def with_affinity(weight: int, *values: str) -> Json:
        return {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": values}]},
        }

    affinity_terms = {"nodeAffinity": {PREFERRED: [with_affinity(10, "ssd", "hdd"), with_affinity(5, "hdd")]}}
    liked = world().liked(pod("p", affinity=affinity_terms))
    assert liked is not None
    assert liked["b1"] > liked["a1"] > liked["a2"] == 0


def test_a_taint_that_prefers_others_is_avoided_unless_it_is_tolerated() -> None:
    there = world()
    there.put(node("a1", taints=({"key": "k", "effect": "PreferNoSchedule"},)))
    assert best(there, pod("p")) == "a2 b1"
    assert there.liked(pod("p", tolerations=[{"operator": "Exists"}])) is None


def test_pods_are_drawn_to_those_that_they_like_and_away_from_those_that_they_do_not() -> None:
    there = world()
    there.on("a1", pod("web", WEB))
    toward = {"podAffinity": {PREFERRED: [liking(5, near(labelled(**WEB)))]}}
    away = {"podAntiAffinity": {PREFERRED: [liking(5, near(labelled(**WEB), HOSTNAME))]}}
    assert best(there, pod("p", affinity=toward)) == "a1 a2"
    assert best(there, pod("p", affinity=away)) == "a2 b1"
    assert best(there, pod("p", affinity=toward | away)) == "a2"


def test_those_that_are_there_draw_others_too() -> None:
    there = world()
    there.on("b1", pod("lonely", affinity={"podAffinity": {PREFERRED: [liking(5, near(labelled(**WEB)))]}}))
    assert best(there, pod("p", WEB)) == "b1"
    assert there.liked(pod("p", {"app": "db"})) is None
    there.off("lonely")
    there.on("a1", pod("needy", affinity=affine(near(labelled(**WEB)))))
    assert best(there, pod("p", WEB)) == "a1 a2"


def test_places_with_fewer_are_better_where_spread_is_wished_for() -> None:
    there = world()
    there.on("a1", pod("one", WEB))
    there.on("a2", pod("two", WEB))
    there.on("b1", pod("three", WEB))
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": labelled(**WEB),
    }
    there.put(node("plain"))
    asking = pod("p", WEB, topologySpreadConstraints=[constraint])
    assert best(there, asking) == "b1"
    assert (there.liked(asking) or {})["plain"] == 0


def running(image: str) -> ApiPod:
    return read(ApiPod, metadata={"name": "p"}, spec={"containers": [{"name": "c", "image": image}]})


def test_a_large_image_that_is_there_already_is_worth_something() -> None:
    def with_image(name: str, **image: Any) -> Any:
        return node(name, images=({"names": ["registry.example/train:latest"], **image},))

    there = World(with_image("a", sizeBytes=900 << 20), node("b"))
    assert best(there, running("registry.example/train")) == "a"
    assert best(there, running("registry.example/train:latest")) == "a"
    assert there.liked(running("registry.example/other")) is None
    there.put(node("a"))
    assert there.liked(running("registry.example/train")) is None
