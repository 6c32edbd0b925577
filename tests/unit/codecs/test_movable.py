"""A pod that opts into moving its memory meets all the requirements, or is refused in one line."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_plugins.api import ContainerName, Namespace, Pod, PodContainer, PodName, PodRef, PodUid, keys
from partage_plugins.codecs.native import read_asks, read_requests
from partage_plugins.errors import DecodeError, PartageError, Refused

MEMORY, MILLI, GPUS = keys.GPU_MEMORY, keys.GPU_MILLI, keys.GPUS
REF = PodRef(namespace=Namespace("team"), name=PodName("p"), uid=PodUid("u"))


def pod(movable: str, **containers: dict[str, str]) -> Pod:
    """A pod whose containers have these limits."""
    made = tuple(PodContainer(name=ContainerName(name), limits=limits) for name, limits in containers.items())
    return Pod(ref=REF, annotations={keys.MOVABLE: movable}, containers=made)


def with_budget(of: Pod) -> Pod:
    return replace(of, annotations={**of.annotations, keys.BUDGET: "pod"})


def moving(of: Pod) -> dict[str, bool]:
    return {str(name): request.movable for name, request in read_requests(of).items()}


def test_all_containers_move_or_those_that_are_named() -> None:
    both = {"a": {MEMORY: "8Gi", "memory": "8Gi"}, "b": {MEMORY: "1Gi", "memory": "1100M"}}
    assert moving(pod("yes", **both)) == {"a": True, "b": True}
    assert moving(pod("no", **both)) == {"a": False, "b": False}
    assert moving(pod("a: yes; b: no", **both)) == {"a": True, "b": False}
    assert moving(pod("b: yes", **both)) == {"a": False, "b": True}


def test_containers_that_ask_for_no_card_have_nothing_to_move() -> None:
    assert moving(pod("yes", a={MEMORY: "1Gi", "memory": "1Gi"}, b={})) == {"a": True}


def test_memory_moves_from_one_card_alone() -> None:
    two = {MEMORY: "8Gi", GPUS: "2", "memory": "8Gi"}
    with pytest.raises(Refused, match="container a asks for 2 cards, and memory moves from one alone"):
        read_requests(pod("yes", a=two))
    assert moving(pod("yes", a={**two, GPUS: "1"})) == {"a": True}


def test_main_memory_must_cover_all_of_it() -> None:
    with pytest.raises(Refused, match=r"needs limits\.memory of at least 8Gi on container a; it has 8191Mi"):
        read_requests(pod("yes", a={MEMORY: "8Gi", "memory": "8191Mi"}))


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (
            pod("yes", a={MEMORY: "8Gi", "memory": "4Gi"}),
            "movable memory of 8Gi needs limits.memory of at least 8Gi on container a; it has 4Gi",
        ),
        (
            pod("yes", a={MEMORY: "8Gi"}),
            "movable memory of 8Gi needs limits.memory of at least 8Gi on container a; it has none",
        ),
        (
            pod("yes", a={MILLI: "500", "memory": "8Gi"}),
            "partage.dev/movable: container a must say by partage.dev/gpu-memory how much memory is to be moved",
        ),
        (
            pod("yes", a={MILLI: "1000", MEMORY: "8Gi", "memory": "8Gi"}),
            "partage.dev/movable: container a has all of a card's time and never makes room; ask for a part",
        ),
        (
            with_budget(pod("yes", a={MEMORY: "1Gi", "memory": "1Gi"}, b={})),
            "partage.dev/movable: container a uses budget pod, and a budget's memory does not move",
        ),
        (pod("maybe", a={MEMORY: "1Gi"}), "request: partage.dev/movable is 'maybe'; allowed: yes or no"),
        (
            pod("yes", a={}),
            (
                "request: partage.dev/movable is 'yes'; allowed: a pod with a container that asks by "
                "partage.dev/gpu-memory"
            ),
        ),
    ],
)
def test_what_can_not_be_moved_is_refused_in_one_line(refused: Pod, sentence: str) -> None:
    with pytest.raises(PartageError) as caught:
        read_asks(refused)
    assert str(caught.value) == sentence


def test_a_limit_that_is_no_amount_is_refused_as_such() -> None:
    with pytest.raises(DecodeError, match=r"containers.a.limits\[memory\] is 'much'"):
        read_requests(pod("yes", a={MEMORY: "1Gi", "memory": "much"}))


def test_a_pod_that_says_no_needs_nothing() -> None:
    assert read_requests(pod("no", a={})) == {}
    assert moving(pod("no", a={MILLI: "1000"})) == {"a": False}
