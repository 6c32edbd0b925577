"""A request that excludes others from a card must be for the whole card, unless the operator trusts the namespace."""

from __future__ import annotations

import pytest

from partage_gpu.allocator import AllocatorSettings, GpuAllocator
from partage_gpu.allocator.settings import settings_from
from partage_plugins.api import Namespace, PodRequest, Tags
from partage_plugins.errors import Refused
from support.gpu_fleet import ask, pod

ALONE = Tags(exclusion="x")
SETTING = "PARTAGE_GPU_EXCLUSION_NAMESPACES"


def is_taken(request: PodRequest, *namespaces: str) -> bool:
    """Whether the request is accepted if these namespaces may exclude others."""
    plugin = GpuAllocator(AllocatorSettings(exclusion_namespaces=frozenset(map(Namespace, namespaces))))
    try:
        plugin.partage_shape(request)
    except Refused:
        return False
    return True


@pytest.mark.parametrize(
    "request_",
    [
        pod(ask(1, tags=ALONE)),
        pod(ask(0, gib=1, tags=ALONE)),
        pod(ask(999, count=2, tags=ALONE)),
        pod(ask(500, count=2, repeats_cards=True, tags=ALONE)),
        pod(ask(1000, tags=ALONE), ask(1, tags=ALONE)),
        pod(ask(1, tags=ALONE), ask(1000), roles=("init", "app")),
    ],
    ids=["a part", "memory alone", "of each of two", "repeated", "one container of two", "an init container"],
)
def test_a_pod_that_keeps_others_off_more_than_it_asks_for_is_refused(request_: PodRequest) -> None:
    assert not is_taken(request_)
    assert not is_taken(request_, "another")
    assert is_taken(request_, "another", "default")
    assert is_taken(request_, "*")


@pytest.mark.parametrize(
    "request_",
    [
        pod(ask(1000, tags=ALONE)),
        pod(ask(1000, count=2, tags=ALONE), ask(1)),
        pod(ask(1, tags=Tags(affinity="x", anti_affinity="y"))),
    ],
    ids=["a whole card", "two, and another container", "other tags"],
)
def test_a_pod_that_asks_for_what_it_keeps_may_be_anybody_s(request_: PodRequest) -> None:
    assert is_taken(request_)


def test_who_is_refused_is_told_what_to_do() -> None:
    with pytest.raises(Refused) as refused:
        GpuAllocator(AllocatorSettings()).partage_shape(pod(ask(10, tags=ALONE), names=("train",)))
    assert str(refused.value) == (
        "exclusion: container train asks for 10 milli of a card and would keep others off all of it; "
        f"ask for 1000 milli of each card, or have the operator name namespace default in {SETTING}"
    )


def test_one_namespace_s_right_is_not_another_s_although_they_ask_for_the_same() -> None:
    plugin = GpuAllocator(AllocatorSettings(exclusion_namespaces=frozenset((Namespace("default"),))))
    mine = pod(ask(1, tags=ALONE))
    plugin.partage_shape(mine)
    ref = mine.pod
    theirs = PodRequest(
        pod=type(ref)(namespace=Namespace("other"), name=ref.name, uid=ref.uid), containers=mine.containers
    )
    for _ in range(2):
        with pytest.raises(Refused, match="namespace other"):
            plugin.partage_shape(theirs)
    plugin.partage_shape(mine)


@pytest.mark.parametrize(
    ("text", "names"), [("", set()), ("*", {"*"}), ("a, team-b ,", None), ("a,team-b", {"a", "team-b"})]
)
def test_the_operator_names_namespaces_and_a_wrong_name_stops_the_scheduler(text: str, names: set[str] | None) -> None:
    if names is None:
        with pytest.raises(ValueError, match=f"{SETTING}: '' is no namespace; allowed: names of namespaces"):
            settings_from({SETTING: text})
    else:
        assert settings_from({SETTING: text}).exclusion_namespaces == names
