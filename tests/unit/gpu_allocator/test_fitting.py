"""Filtering is exact: a node fits if and only if some choice of cards works, and otherwise the reason is given."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins import Refused
from partage_plugins.api import Card, GpuRequest, PodRequest, Slot, Tags
from partage_plugins.api.usage import peak
from support.gpu_fleet import GIB, Fleet, ask, card, cards, granted, pod
from unit.gpu_allocator.test_counting import PODS, POLICIES

NODE = [card("a0"), card("a1", gib=8), card("a2", model="A10", gib=24)]


def any_choice_works(of_node: list[Card], left: dict[str, tuple[int, int]], request: PodRequest) -> bool:
    """Tries every set of cards for every container; ignores tags, which other tests cover."""
    containers = [(container.role, ask) for container in request.containers for _, ask in container.asks]
    choices = [list(combinations(of_node, ask.count)) for _, ask in containers if isinstance(ask, GpuRequest)]
    return any(all(_fits_on(each, left, containers, chosen) for each in of_node) for chosen in product(*choices))


def _fits_on(each: Card, left: dict[str, tuple[int, int]], containers: list, chosen: tuple) -> bool:  # type: ignore[type-arg]
    held = [(role, ask) for (role, ask), places in zip(containers, chosen, strict=True) if each in places]
    allowed = all((not ask.models or each.model in ask.models) and each.id not in ask.cards_not for _, ask in held)
    share = peak((role, ask.share_milli) for role, ask in held)
    memory = peak((role, ask.memory_on(each.memory_bytes)) for role, ask in held)
    return allowed and (not held or (share <= left[each.id][0] and memory <= left[each.id][1]))


def without_tags(request: PodRequest) -> PodRequest:
    asks = [ask for container in request.containers for _, ask in container.asks if isinstance(ask, GpuRequest)]
    bare = [
        GpuRequest(
            count=ask.count,
            share_milli=ask.share_milli,
            memory_bytes=ask.memory_bytes,
            models=ask.models,
            cards_not=ask.cards_not,
        )
        for ask in asks
    ]
    return pod(*bare, roles=[container.role for container in request.containers])


@pytest.mark.slow
@given(st.lists(st.integers(0, 1000), min_size=3, max_size=3), PODS.map(without_tags), st.sampled_from(POLICIES))
def test_it_fits_exactly_where_some_choice_of_cards_works(used: list[int], request: PodRequest, policy: str) -> None:
    fleet = Fleet(NODE, policy=policy)
    left: dict[str, tuple[int, int]] = {}
    for each, milli in zip(NODE, used, strict=True):
        fleet.place_on(Slot(0), pod(ask(milli, cards=(each.id,))))
        left[each.id] = 1000 - milli, each.memory_bytes - ask(milli).memory_on(each.memory_bytes)
    assert bool(fleet.fitting(request)) == any_choice_works(NODE, left, request)


@pytest.mark.slow
@given(st.lists(PODS, max_size=12), st.sampled_from(POLICIES))
def test_it_allocates_wherever_it_fits_and_refuses_elsewhere(pods: list[PodRequest], policy: str) -> None:
    fleet = Fleet(NODE, cards("b", 2), [], policy=policy)
    for request in pods:
        fitting = fleet.fitting(request)
        for slot in fleet.nodes:
            if slot in fitting:
                wanted = sum(ask.count for container in request.containers for _, ask in container.asks)  # type: ignore[attr-defined]
                assert len(granted(fleet.allocation(request, slot))) == wanted
            else:
                with pytest.raises(Refused, match="does not fit on this node: "):
                    fleet.allocation(request, slot)
        fleet.place(request)


def test_one_container_never_gets_one_card_twice() -> None:
    fleet = Fleet(cards("a", 2))
    assert fleet.place(pod(ask(300, count=2))) == ["a0", "a1"]
    assert fleet.place(pod(ask(300, count=3))) is None


def test_one_container_gets_one_card_several_times_where_it_asks_for_that() -> None:
    fleet = Fleet(cards("a", 2))
    assert fleet.place(pod(ask(300, count=4, repeats_cards=True))) == ["a0", "a0", "a0", "a1"]
    assert fleet.place(pod(ask(700, count=2, repeats_cards=True))) is None
    assert fleet.place(pod(ask(700, repeats_cards=True))) == ["a1"]


def test_repeated_cards_are_each_asked_for_their_models_and_tags() -> None:
    fleet = Fleet([card("a0", model="A10"), card("a1")])
    assert fleet.place(pod(ask(100, count=2, repeats_cards=True, models=("A10",)))) == ["a0", "a0"]
    red = Tags(exclusion="red")
    assert fleet.place(pod(ask(100, count=2, repeats_cards=True, tags=red))) == ["a1", "a1"]


def test_an_init_container_cannot_have_one_card_several_times() -> None:
    """Init containers are counted as if their grants were used one after the other."""
    with pytest.raises(Refused, match="init container c0 cannot have several grants on one card"):
        Fleet(cards("a", 2)).fitting(pod(ask(300, count=2, repeats_cards=True), ask(1), roles=["init", "app"]))


def test_grants_that_are_placed_one_by_one_have_a_bound() -> None:
    with pytest.raises(Refused, match="asks for 513 grants one by one; at most 512 are placed"):
        Fleet(cards("a", 2)).fitting(pod(ask(1, count=513, repeats_cards=True)))


def test_containers_that_exclude_each_other_get_different_cards() -> None:
    mine, other = Tags(exclusion="a"), Tags(exclusion="b")
    fleet = Fleet(cards("a", 2))
    assert sorted(fleet.place(pod(ask(100, tags=mine), ask(100, tags=other))) or []) == ["a0", "a1"]
    assert Fleet(cards("a", 1)).place(pod(ask(100, tags=mine), ask(100, tags=other))) is None


def test_memory_alone_is_a_request_and_its_fraction_of_another_card_is_another_size() -> None:
    fleet = Fleet([card("a0", gib=8), card("a1", gib=24)])
    assert fleet.place(pod(ask(gib=12))) == ["a1"]
    assert fleet.place(pod(ask(500))) == ["a1"], "half of 24 GiB, and the fuller card"
    assert fleet.place(pod(ask(gib=1))) == ["a0"]


def test_the_id_of_a_gpu_names_the_instances_on_it() -> None:
    parts = [card("MIG-1", parent="GPU-1"), card("MIG-2", parent="GPU-2")]
    assert Fleet(parts).place(pod(ask(500, cards=("GPU-2",)))) == ["MIG-2"]
    assert Fleet(parts).place(pod(ask(500, cards_not=("GPU-1",)))) == ["MIG-2"]
    assert Fleet(parts).place(pod(ask(500, cards=("MIG-1",), cards_not=("GPU-1",)))) is None


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (pod(ask(100, models=("H100",))), "node(s) had no card of a model as asked for (there are T4)"),
        (pod(ask(100, models_not=("T4",))), "node(s) had no card of a model as asked for (there are T4)"),
        (pod(ask(100, models=("T4",), cards=("zz",))), "node(s) had too few cards as asked for"),
        (pod(ask(100, cards=("zz",))), "node(s) had too few cards as asked for"),
        (pod(ask(900)), "Insufficient GPU share"),
        (pod(ask(100, gib=15)), "Insufficient GPU memory"),
        (pod(ask(100, count=4)), "node(s) had too few healthy cards to share"),
        (pod(ask(100, tags=Tags(exclusion="x"))), "node(s) had cards whose tags keep the pod away"),
        (pod(ask(400), ask(400), ask(400)), "node(s) had no cards for all containers together"),
        (pod(ask(100), ask(100, gib=15)), "Insufficient GPU memory"),
    ],
)
def test_reasons_are_stable_sentences(request_: PodRequest, why: str) -> None:
    fleet = Fleet([card("a0"), card("a1"), card("a2", pool="kubelet")])
    fleet.place_on(Slot(0), pod(ask(500, gib=4, cards=("a0",))))
    fleet.place_on(Slot(0), pod(ask(500, gib=4, cards=("a1",))))
    assert fleet.why_not(request_) == [why]


def test_of_the_models_that_there_are_few_are_named() -> None:
    fleet = Fleet([card(f"a{number}", model=f"M{number}") for number in range(6)])
    assert fleet.why_not(pod(ask(1, models=("h1000",)))) == [
        "node(s) had no card of a model as asked for (there are M0, M1, M2, M3 and 2 more)"
    ]


def test_a_node_without_cards_says_so() -> None:
    assert Fleet([]).why_not(pod(ask(1))) == ["node(s) had no cards"]
    assert Fleet([card("a0", pool="kubelet")]).why_not(pod(ask(1))) == ["node(s) had too few healthy cards to share"]


@pytest.mark.slow
def test_the_longest_search_ends() -> None:
    """Many different cards and containers that can't all fit: the search gives up instead of running without end."""
    of_node = [card(f"a{place}", gib=10 + place) for place in range(14)]
    fleet = Fleet(of_node)
    for place, each in enumerate(of_node):
        fleet.place_on(Slot(0), pod(ask(390 + place, cards=(each.id,))))
    assert not fleet.fitting(pod(*(ask(590 - place) for place in range(15))))
    assert ask(1).memory_on(10 * GIB) > 0
