"""A pod with too many fields stays pending with a message; one that others placed counts with its first fields."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from partage_plugins.api import Pod, PodRequest, keys
from partage_plugins.errors import Refused
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.objects.excess import AMOUNTS, MOST_BYTES, OF_PODS, REACHING
from partage_scheduler.predicates.needs import asked_by
from partage_scheduler.predicates.ports import host_ports
from partage_scheduler.requests import RequestReader
from support.objects import HOSTNAME, REQUIRED, Json, apart, labelled, near, node, on_terms, pod, read
from unit.scheduler.placing import World

EXISTS = [{"key": f"key-{number}", "operator": "Exists"} for number in range(600)]
ABOUT_NODES = on_terms({"matchExpressions": EXISTS})
MANY_NODES = on_terms(*({"matchExpressions": [each]} for each in EXISTS))
VALUES = {"key": HOSTNAME, "operator": "In", "values": [f"n{number}" for number in range(5000)]}
MANY_VALUES = on_terms({"matchExpressions": [VALUES]})
PORTS = [{"hostPort": 1 + number} for number in range(600)]


class NoDialect:
    """Reads no request from any pod."""

    def requests(self, pod: Pod) -> PodRequest:
        return PodRequest(pod=pod.ref, containers=())


def terms(count: int, **more: Any) -> Json:
    return apart(*(near(labelled(app=f"app-{number}"), HOSTNAME, **more) for number in range(count)))


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"containers": [{"name": f"c{number}"} for number in range(600)]}, "600 containers.* reads 512 at most"),
        ({"affinity": MANY_NODES}, "600 terms about nodes"),
        ({"affinity": ABOUT_NODES}, "600 expressions in terms"),
        ({"affinity": MANY_VALUES}, "5000 values in terms"),
        ({"affinity": terms(OF_PODS + 1)}, f"{OF_PODS + 1} terms about other pods"),
        ({"affinity": terms(5, namespaceSelector={})}, "5 terms about pods of other namespaces"),
        ({"affinity": terms(5, namespaces=["other"])}, "5 terms about pods of other namespaces"),
        ({"tolerations": [{"key": f"k{number}"} for number in range(600)]}, "600 tolerations"),
        ({"volumes": [{"name": f"v{number}"} for number in range(600)]}, "600 volumes"),
        ({"containers": [{"name": "main", "ports": PORTS}]}, "600 ports"),
        ({"containers": [{"name": "main", "image": "i" * MOST_BYTES}]}, f"bytes, and {MOST_BYTES} are allowed"),
    ],
)
def test_who_says_too_much_is_told_what_how_much_and_what_is_allowed(spec: dict[str, Any], what: str) -> None:
    large = pod("p", **spec)
    with pytest.raises(Refused, match=what):
        RequestReader(NoDialect().requests).of(large)
    assert len(large.excess) < 200


def test_a_copy_of_what_is_kept_still_says_how_much_there_was() -> None:
    said = [{"topologyKey": "zone", "matchLabelKeys": [key] * 600} for key in ("x", "x" * 100)]
    large = pod("p", affinity={"podAffinity": {REQUIRED: said}})
    assert "1200 expressions in terms" in large.excess
    assert replace(large).excess == large.excess


def test_so_are_those_with_too_many_labels_annotations_or_amounts() -> None:
    many = {f"k{number}": "1" for number in range(2000)}
    assert "2000 labels" in pod("p", many).excess
    assert "2000 amounts of resources" in pod("p", requests=many).excess
    assert "2000 annotations" in read(ApiPod, metadata={"name": "p", "annotations": many}).excess


def test_who_says_as_much_as_is_allowed_is_read() -> None:
    spec: dict[str, Any] = {"affinity": terms(OF_PODS), "tolerations": [{"key": f"k{number}"} for number in range(512)]}
    large = pod("p", {f"k{number}": "x" for number in range(256)}, **spec)
    assert not large.excess
    assert RequestReader(NoDialect().requests).of(large).pod.name == "p"


def test_of_a_pod_that_says_too_much_little_is_kept() -> None:
    many = {f"key-{number}": "x" for number in range(20_000)}
    large = read(
        ApiPod,
        metadata={"name": "p", "namespace": "team", "labels": many, "annotations": many | {keys.GANG: "g"}},
        spec={"affinity": MANY_VALUES, "containers": [{"name": "c", "image": "i" * 100_000, "ports": PORTS}] * 100},
        status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "m" * 100_000}]},
    )
    assert large.bytes < MOST_BYTES // 4
    assert large.metadata.annotations == {keys.GANG: "g"}


def test_a_pod_on_a_node_takes_what_all_its_containers_take_however_many_they_are() -> None:
    names = {f"example.com/{number}": "1" for number in range(AMOUNTS)}
    each = {"cpu": "2m", "memory": "1Mi", "ephemeral-storage": "1Ki"}
    containers = [{"name": f"c{number}", "resources": {"requests": names | each}} for number in range(1000)]
    first = [{"name": f"i{number}", "resources": {"requests": {"cpu": f"{number}m"}}} for number in range(3000)]
    asked = asked_by(pod("p", nodeName="n", containers=containers, initContainers=first))
    assert asked["cpu"] == 2999
    assert asked["memory"] == 1000 << 20
    assert asked["ephemeral-storage"] == 1000 << 10


def test_so_does_one_whose_sidecars_are_many() -> None:
    sidecars = [
        {"name": f"s{number}", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m"}}}
        for number in range(700)
    ]
    containers = [{"name": "main", "resources": {"requests": {"cpu": "5m"}}}]
    assert asked_by(pod("p", nodeName="n", containers=containers, initContainers=sidecars))["cpu"] == 705


def test_a_pod_on_a_node_keeps_others_away_by_the_first_of_its_terms_and_ports() -> None:
    there = World(node("n"), node("m"))
    there.on("n", pod("large", affinity=terms(OF_PODS + 500), nodeName="n"))
    assert there.where(pod("p", {"app": "app-0"})) == "m"
    assert there.where(pod("p", {"app": f"app-{OF_PODS}"})) == "n m"
    reaching = terms(500, namespaceSelector={})
    assert len(pod("q", nodeName="n", affinity=reaching).spec.affinity.pod_anti_affinity.required) == REACHING  # type: ignore[union-attr]
    assert len(host_ports(pod("q", nodeName="n", ports=tuple(PORTS)))) == 512


def test_of_others_annotations_on_a_pod_that_is_placed_nothing_is_kept() -> None:
    notes = {"example.com/status": "x" * 1000, keys.ALLOCATION: "{}", keys.GANG: "g"}
    waits = read(ApiPod, metadata={"name": "p", "annotations": notes})
    placed = read(ApiPod, metadata={"name": "p", "annotations": notes}, spec={"nodeName": "n"})
    assert waits.metadata.annotations == notes
    assert placed.metadata.annotations == {keys.ALLOCATION: "{}", keys.GANG: "g"}


def test_a_placed_pod_without_an_allocation_may_have_asked_by_short_annotations_of_others() -> None:
    notes = {"example.com/gpus": "1", "example.com/long": "x" * 2000, keys.GANG: "g"}
    notes |= {f"example.com/{number}": "x" * 200 for number in range(20)}
    kept = read(ApiPod, metadata={"name": "p", "annotations": notes}, spec={"nodeName": "n"}).metadata.annotations
    assert {"example.com/gpus", "example.com/0", keys.GANG} <= kept.keys()
    assert "example.com/long" not in kept
    assert sum(len(key) + len(text) for key, text in kept.items()) <= 1100


def test_a_node_that_says_more_than_any_use_takes_no_new_pods_and_little_of_it_is_kept() -> None:
    labels = {f"l{number}": "x" for number in range(5000)}
    images = [{"names": [f"i{number}-{other}" for other in range(100)]} for number in range(1000)]
    large = read(
        ApiNode,
        metadata={"name": "n", "labels": labels, "annotations": {"example.com/a": "x", keys.INVENTORY: "{}"}},
        status={"allocatable": {"pods": "110"}, "images": images},
    )
    assert large.spec.unschedulable
    assert len(large.metadata.labels) == 512
    assert sum(len(each.names or ()) for each in large.status.images) == 256 * 8
    assert large.metadata.annotations == {keys.INVENTORY: "{}"}
    assert not node("plain").spec.unschedulable
