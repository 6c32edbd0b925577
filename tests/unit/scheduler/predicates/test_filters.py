# pyright: reportPrivateUsage=false
"""The nodes that upstream's filters exclude, and the messages."""

from __future__ import annotations

from typing import Any

import pytest

from partage_plugins.cache import Cache
from partage_scheduler.objects import ApiPod
from support.objects import (
    HOSTNAME,
    PREFERRED,
    ZONE,
    Json,
    affine,
    apart,
    labelled,
    namespace,
    near,
    node,
    on_terms,
    pod,
)
from unit.scheduler.placing import World

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
    assert world.where(pod("p", affinity=on_terms(term))) == nodes


def test_a_pod_that_names_its_node_goes_there_alone() -> None:
    world = World(node("a"), node("b"))
    assert world.where(pod("p", nodeName="b")) == "b"
    assert world.why(pod("p", nodeName="b")) == {"a": "node(s) didn't match the requested node name"}


FAR = "node(s) didn't match pod affinity rules"
CLOSE = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB, DB = {"app": "web"}, {"app": "db"}


def world() -> World:
    """Two nodes in one zone, one in another, one without a zone."""
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


def constraint(skew: int = 1, key: str = ZONE, **more: Any) -> Json:
    selector = {"labelSelector": labelled(**WEB)}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}


def web(name: str, *constraints: Json, labels: Json | None = None, **spec: Any) -> ApiPod:
    return pod(name, labels or WEB, topologySpreadConstraints=list(constraints), **spec)


def counted(*counts: int, **labels: str) -> World:
    """Zones of one node each, with these numbers of pods."""
    there = World(*(node(f"n{place}", labels={ZONE: f"z{place}", **labels}) for place in range(len(counts))))
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
    assert counted(*counts).where(web("p", constraint(skew))) == where


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    """As in kube-scheduler; elsewhere an empty selector selects everything."""
    assert counted(5, 0).where(web("p", constraint(labelSelector={}))) == "n0 n1"
    assert counted(5, 0).where(web("p", constraint(labelSelector={}, matchLabelKeys=["app"]))) == "n1"


@pytest.mark.parametrize(("least", "where"), [(2, "n0 n1"), (3, ""), (1, "n0 n1")])
def test_while_there_are_fewer_places_than_there_should_be_the_emptiest_counts_as_empty(least: int, where: str) -> None:
    assert counted(1, 1).where(web("p", constraint(minDomains=least))) == where


STRANGE = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "resource claims (DRA)"),
        ({"schedulingGroup": {"podGroupName": "train"}}, "partage.dev/gang and partage.dev/gang-size instead"),
        ({"schedulingGroup": {"inWordsOfALaterVersion": "train"}}, "does not bind as one"),
        ({"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]}, "gcePersistentDisk"),
        ({"volumes": [{"name": "d", "rbd": {"monitors": ["m"]}}]}, "kind rbd"),
        ({"tolerations": [{"key": "k", "operator": "Gt", "value": "5"}]}, "toleration operator 'Gt' is not known"),
        ({"affinity": on_terms(STRANGE)}, "operator 'Like' is not known"),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": STRANGE}]}}}, "operator 'Like'"),
        ({"affinity": affine(near(STRANGE))}, "operator 'Like'"),
        ({"affinity": affine(near({}, namespaceSelector=STRANGE))}, "operator 'Like'"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "Try"}]},
            "whenUnsatisfiable 'Try' is not known",
        ),
    ],
)
def test_it_is_said_in_one_sentence(spec: dict[str, Any], words: str) -> None:
    why = World().predicates.unsupported(pod("p", **spec))
    assert why is not None
    assert words in why


def test_of_a_plain_pod_nothing_is_said() -> None:
    plain = pod("p", tolerations=[{"operator": "Exists"}], volumes=[{"name": "tmp", "emptyDir": {}}])
    assert World().predicates.unsupported(plain) is None
