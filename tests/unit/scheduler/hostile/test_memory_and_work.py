"""What users can make a scheduler store or scan is bounded, and is released with their pods."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from partage_plugins.api import PodUid, Slot
from partage_scheduler.objects import ApiNode, ApiPod, Meta
from partage_scheduler.predicates import Predicates
from support.objects import HOSTNAME, apart, labelled, near, node, on_terms, pod, read

pytestmark = pytest.mark.slow  # clusters of a thousand nodes

NODES = 1000
MIB = 1 << 20


class Looked(dict[str, str]):
    """A node's labels that count their lookups."""

    looks = 0

    def get(self, *asked: Any) -> Any:
        Looked.looks += 1
        return super().get(*asked)


@pytest.fixture
def grown() -> Iterator[Callable[[], int]]:
    """Returns by how many bytes the allocated memory has grown since the test began."""
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]

        def since() -> int:
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before

        yield since
    finally:
        tracemalloc.stop()


def inside(thing: object, *names: str) -> Any:
    """A private attribute, by its path."""
    for name in names:
        thing = getattr(thing, name)
    return thing


def predicates(nodes: int) -> Predicates:
    told = Predicates()
    for number in range(nodes):
        told.put_node(Slot(number), node(f"n{number}"))
    return told


def with_fpgas(name: str) -> ApiNode:
    return read(ApiNode, metadata={"name": name}, status={"allocatable": {"pods": "110", "example.com/fpga": "3"}})


def asking(names: int, **spec: Any) -> ApiPod:
    return pod("p", requests={f"example.com/{number}": "1" for number in range(names)}, **spec)


def test_a_resource_that_no_node_has_takes_no_room_for_each_node_and_goes_with_its_last_pod(
    grown: Callable[[], int],
) -> None:
    told = predicates(NODES)
    before = grown()
    told.put_pod(Slot(NODES - 1), asking(500, nodeName="n"))
    assert grown() - before < MIB
    told.barred(asking(500), NODES)
    told.remove_pod(PodUid("uid-p"))
    assert grown() - before < MIB // 4
    assert inside(told, "_rest", "_free").keys() == {"ephemeral-storage"}, "what nodes have, and nothing else"


def test_a_resource_that_a_node_has_later_counts_what_pods_there_hold_already() -> None:
    told = predicates(2)
    told.put_pod(Slot(0), pod("there", requests={"example.com/fpga": "2"}))
    for number in range(2):
        told.put_node(Slot(number), with_fpgas(f"n{number}"))
    (lacking,) = told.barred(pod("p", requests={"example.com/fpga": "2"}), 2)
    assert lacking.flags(2).tolist() == [True, False]
    told.remove_pod(PodUid("uid-there"))
    assert told.barred(pod("p", requests={"example.com/fpga": "2"}), 2) == []


def test_a_label_that_no_node_has_is_looked_for_on_none() -> None:
    told = Predicates()
    for number in range(20):
        told.put_node(Slot(number), ApiNode(metadata=Meta(name=f"n{number}", labels=Looked({HOSTNAME: f"n{number}"}))))
    Looked.looks = 0
    unknown = [{"key": f"key-{number}", "operator": "DoesNotExist"} for number in range(250)]
    chosen = on_terms({"matchExpressions": unknown})
    assert not any(
        each.flags(20).any() for each in told.barred(pod("p", affinity=chosen), 20) if "affinity" in str(each.reason)
    )
    assert Looked.looks == 0


def test_a_label_is_known_from_its_first_node_and_forgotten_with_its_last() -> None:
    told = predicates(2)
    choosy = pod("p", nodeSelector={"disk": "ssd"})

    def where() -> list[bool]:
        return [not any(each.has(slot) for each in told.barred(choosy, 2)) for slot in range(2)]

    assert where() == [False, False]
    told.put_node(Slot(1), node("n1", labels={"disk": "ssd"}))
    assert where() == [False, True]
    told.put_node(Slot(1), node("n1"))
    assert where() == [False, False]
    assert "disk" not in dict(inside(told, "_nodes", "_columns").items())


def asked_once(told: Predicates, own: str) -> None:
    exists = [{"key": f"{own}-{number}", "operator": "Exists"} for number in range(10_000)]
    told.barred(pod("w", affinity=on_terms({"matchExpressions": exists})), 20)
    told.barred(pod("w", affinity=apart(*(near(labelled(**{own: str(number)}), "h") for number in range(4000)))), 20)


def test_what_was_asked_once_and_never_again_is_bounded_however_much_was_asked(grown: Callable[[], int]) -> None:
    told = predicates(20)
    before = grown()
    for number in range(8):
        asked_once(told, f"a{number}")
    assert grown() - before < 2 * MIB


def test_many_who_say_as_much_as_is_allowed_are_remembered_within_bytes() -> None:
    told = predicates(20)
    for number in range(600):
        terms = [near(labelled(**{f"a{number}": str(other)}), HOSTNAME) for other in range(32)]
        told.barred(pod("w", affinity=apart(*terms)), 20)
    assert 0 < inside(told, "_affinity_terms").bytes <= 16 * MIB
    assert 0 < inside(told, "_kinds").bytes <= 32 * MIB
    assert len(inside(told, "_kinds", "_groups")) < 2048
    assert inside(told, "_nodes").bytes <= 64 * MIB


def test_terms_about_all_pods_are_asked_once_for_pods_that_look_alike() -> None:
    told, asked = predicates(NODES), 0
    for number in range(50):
        of_all = [
            near(
                {"matchExpressions": [{"key": f"k{number}-{other}", "operator": "DoesNotExist"}]},
                HOSTNAME,
                namespaceSelector={},
            )
            for other in range(4)
        ]
        told.put_pod(Slot(number), pod(f"large-{number}", namespace="theirs", affinity=apart(*of_all)))
    apart_from = inside(told, "_inter_pod_affinity", "_apart")
    together = apart_from._together

    def counted(terms: Any) -> Any:
        nonlocal asked
        asked += 1
        return together(terms)

    apart_from._together = counted
    for number in range(100):
        (unwelcome,) = told.barred(pod(f"p{number}", {"app": "web"}), NODES)
        assert int(unwelcome.flags(NODES).sum()) == 50
    assert asked == 1
    told.remove_pod(PodUid("uid-large-0"))
    (unwelcome,) = told.barred(pod("p", {"app": "web"}), NODES)
    assert int(unwelcome.flags(NODES).sum()) == 49


def test_terms_about_the_pods_of_one_namespace_are_no_matter_to_those_of_others() -> None:
    told = predicates(20)
    for number in range(100):
        terms = [
            near({"matchExpressions": [{"key": f"k{number}-{other}", "operator": "DoesNotExist"}]}, HOSTNAME)
            for other in range(32)
        ]
        told.put_pod(Slot(number % 20), pod(f"large-{number}", namespace="theirs", affinity=apart(*terms)))
    assert inside(told, "_inter_pod_affinity", "_apart", "_by_handle").candidates("team", {"app": "web"}.items()) == []
    assert told.barred(pod("p", namespace="team"), 20) == []
    (unwelcome,) = told.barred(pod("p", namespace="theirs"), 20)
    assert unwelcome.flags(20).all()


def test_a_port_that_many_addresses_use_is_answered_by_two_counts() -> None:
    told = predicates(2)
    for number in range(100):
        address = f"10.0.0.{number}"
        told.put_pod(Slot(0), pod(f"p{number}", ports=({"hostPort": 80, "hostIP": address},)))
    port = inside(told, "_ports", "_used")["TCP", 80]
    assert len(list(port.in_the_way("10.0.0.7"))) == len(list(port.in_the_way("0.0.0.0"))) == 1  # noqa: S104
    (taken,) = told.barred(pod("all", ports=({"hostPort": 80},)), 2)
    assert taken.flags(2).tolist() == [True, False]


def test_a_large_pod_is_decoded_to_a_small_one(grown: Callable[[], int]) -> None:
    names = {f"example.com/{number}": "1" for number in range(20_000)}
    text = msgspec.json.encode(
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"limits": names}}]}}
    )
    before = grown()
    kept = [msgspec.json.decode(text, type=ApiPod) for _ in range(10)]
    assert grown() - before < MIB
    assert len(kept) == 10
