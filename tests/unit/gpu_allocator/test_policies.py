"""The preferences of each policy, on clusters small enough to verify by hand."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.allocator import AllocatorSettings, GpuAllocator, Shape, popular_shapes
from partage_gpu.allocator.closeness import tightest
from partage_gpu.allocator.mix import POLICIES, read_mix
from partage_gpu.allocator.settings import settings_from
from partage_gpu.allocator.shapes import pressures
from partage_gpu.allocator.typical import ShapeCounts
from partage_plugins import Refused
from partage_plugins.api import PodUid, Resources, Slot
from support.gpu_fleet import Fleet, ask, card, cards, pod

HALVES = popular_shapes([Shape(4000, 1, 500)] * 3 + [Shape(4000, 1, 1000)])


def half_used(policy: str) -> Fleet:
    """One card of the first node is half used, the second node is empty."""
    fleet = Fleet(cards("a", 2), cards("b", 2), policy=policy, shapes=HALVES)
    fleet.place_on(Slot(0), pod(ask(500)))
    return fleet


@pytest.mark.parametrize("policy", ["binpack", "kubeshare", "fgd", "fgd+"])
def test_packing_policies_fill_the_card_in_use(policy: str) -> None:
    assert half_used(policy).place(pod(ask(500))) == ["a0"]


def test_spread_takes_the_emptiest_card_of_the_emptiest_node() -> None:
    fleet = half_used("spread")
    assert fleet.place(pod(ask(500))) == ["b0"]
    assert fleet.place(pod(ask(100))) == ["a1"]


def test_a_pod_may_choose_its_own_policy() -> None:
    assert half_used("binpack").place(pod(ask(500, policy="spread"))) == ["b0"]
    assert half_used("spread").place(pod(ask(500, policy="binpack"))) == ["a0"]


def test_containers_of_a_pod_may_have_different_policies() -> None:
    fleet = Fleet(cards("a", 3))
    fleet.place(pod(ask(300)))
    assert sorted(fleet.place(pod(ask(300, policy="spread"), ask(200, policy="binpack"))) or []) == ["a0", "a1"]


def test_fragmentation_leaves_a_hole_that_typical_pods_fill() -> None:
    """500 is left on one card, 300 on the other: a pod of 300 goes where it leaves no gap of 200."""
    fleet = Fleet(cards("a", 2), policy="fgd", shapes=HALVES)
    fleet.place(pod(ask(500, cards=("a0",))))
    fleet.place(pod(ask(700, cards=("a1",))))
    assert fleet.place(pod(ask(300))) == ["a1"]


def test_a_pod_without_cards_leaves_cpu_to_cards() -> None:
    """The first node's cards are all taken, so its CPU is useless to other pods with cards."""
    fleet = Fleet(cards("a", 1), cards("b", 1), policy="fgd+", shapes=HALVES, cpu_milli=8000)
    fleet.place_on(Slot(1), pod(ask(1000)))
    bare = pod(cpu_milli=6000)
    assert fleet.fitting(bare) == [0, 1]
    scores = fleet.scores(bare)
    assert scores[1] > scores[0]


def test_a_pod_that_may_have_any_card_leaves_those_in_demand() -> None:
    demand = popular_shapes([Shape(0, 1, 500)] * 2 + [Shape(0, 1, 500, ("A10",))])
    nodes = [card("a0", model="A10")], [card("t0"), card("t1")]
    assert Fleet(*nodes, policy="fgd+", shapes=demand).place(pod(ask(500))) == ["t0"]
    assert Fleet(*nodes, policy="fgd+", shapes=demand).place(pod(ask(500, models=("A10",)))) == ["a0"]


def test_pressure_is_demand_by_name_over_what_can_serve_it() -> None:
    typical = popular_shapes([Shape(0, 1, 500)] * 3 + [Shape(0, 1, 500, ("A10",))])
    assert pressures(typical, {"A10": 1, "T4": 3}) == {"A10": 1.0, "T4": 0.0}
    either = popular_shapes([Shape(0, 1, 500)] * 3 + [Shape(0, 1, 500, ("A10", "T4", "gone"))])
    assert pressures(either, {"A10": 1, "T4": 1, "L4": 2}) == {"A10": 0.5, "T4": 0.5, "L4": 0.0}


def test_among_equal_fragments_the_fuller_node_is_taken() -> None:
    fleet = Fleet(cards("a", 2), cards("b", 2), policy="fgd+", shapes=popular_shapes([Shape(0, 1, 1000)]))
    fleet.place_on(Slot(1), pod(ask(1000)))
    assert fleet.place(pod(ask(1000))) == ["b1"]


def test_of_equally_close_sets_the_one_that_leaves_more_is_taken() -> None:
    """Pairs 0-1 and 2-3 are equally close, but 4 is linked with 0."""
    pairs = {(0, 1): 1.0, (2, 3): 1.0, (0, 4): 0.5}
    close = tuple(tuple(pairs.get((min(one, other), max(one, other)), 0.0) for other in range(5)) for one in range(5))
    assert tightest(close, range(5), 2) == (2, 3)


def test_demand_by_model_changes_shapes_when_nodes_come() -> None:
    demand = popular_shapes([Shape(0, 1, 500), Shape(0, 1, 500, ("A10",))])
    fleet = Fleet([card("a0", model="A10")], policy="fgd+", shapes=demand)
    before = fleet.plugin.partage_shape(pod(ask(500)))
    assert fleet.plugin.partage_shape(pod(ask(500))) == before
    fleet.add(Slot(1), cards("t", 4))
    assert fleet.plugin.partage_shape(pod(ask(500))) != before


def test_only_policies_that_look_at_cpu_have_it_in_their_shape() -> None:
    plain = Fleet(cards("a", 1)).plugin
    assert plain.partage_shape(pod(ask(1), cpu_milli=1)) == plain.partage_shape(pod(ask(1), cpu_milli=2))
    assert plain.partage_shape(pod(ask(1, policy="fgd"), cpu_milli=1)) != plain.partage_shape(
        pod(ask(1, policy="fgd"), cpu_milli=2)
    )


# Two pairs of well-linked cards, 0 with 3 and 1 with 2.
PAIRS = ((0, 1, 1, 12), (1, 0, 12, 1), (1, 12, 0, 1), (12, 1, 1, 0))


def paired(policy: str) -> Fleet:
    fleet = Fleet(policy=policy)
    fleet.add(Slot(0), cards("a", 4), PAIRS)
    return fleet


@pytest.mark.parametrize("policy", ["topology", "fgd+", "binpack", "fgd+:2,topology:1"])
def test_two_cards_for_one_container_are_a_linked_pair(policy: str) -> None:
    fleet = paired(policy)
    fleet.place(pod(ask(1000, cards=("a0",))))
    assert fleet.place(pod(ask(1000, count=2))) == ["a1", "a2"]


@pytest.mark.parametrize("policy", ["topology", "fgd+"])
def test_one_card_breaks_no_linked_pair_where_it_can(policy: str) -> None:
    fleet = paired(policy)
    fleet.place(pod(ask(1000, cards=("a1",))))
    assert fleet.place(pod(ask(1000))) == ["a2"]


def test_policies_as_published_take_the_first_cards() -> None:
    assert paired("fgd").place(pod(ask(1000, count=2))) == ["a0", "a1"]
    assert paired("kubeshare").place(pod(ask(1000, count=2))) == ["a0", "a1"]


def test_cards_of_one_numa_node_are_closer_where_links_are_the_same() -> None:
    fleet = Fleet([card(f"a{place}", numa_node=place % 2) for place in range(4)], policy="topology")
    assert fleet.place(pod(ask(1000, count=2))) == ["a0", "a2"]


def test_sets_of_many_cards_are_grown_instead_of_compared() -> None:
    """Three islands of eight cards; a set of eight is exactly one island."""
    number = 24
    links = tuple(tuple(4 if i != j and i % 3 == j % 3 else 0 for j in range(number)) for i in range(number))
    fleet = Fleet(policy="topology")
    fleet.add(Slot(0), cards("a", number), links)
    assert fleet.place(pod(ask(1000, count=8))) == [f"a{place}" for place in range(0, number, 3)]


@pytest.mark.parametrize("text", ["", "best", "fgd+,fgd+", "fgd+:0", "fgd+:x", "fgd:1000", "fgd+;binpack", "a" * 200])
def test_a_policy_that_does_not_exist_is_refused_in_words(text: str) -> None:
    with pytest.raises(Refused, match="allowed: one of binpack, spread, kubeshare, fgd, fgd"):
        read_mix(text)
    with pytest.raises(Refused, match="is not known"):
        Fleet(cards("a", 1)).plugin.partage_shape(pod(ask(1, policy=text)))


def test_weights_count_against_each_other_in_any_order() -> None:
    assert read_mix("topology=1,fgd+=3") == read_mix("fgd+:3, topology") == read_mix("fgd+:6,topology:2")
    assert dict(read_mix("fgd+:3,topology").weights) == {"fgd+": 0.75, "topology": 0.25}


def test_partage_gpu_policy_is_the_default_and_a_wrong_one_stops_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_from({}).mix == read_mix("fgd+")
    assert settings_from({"PARTAGE_GPU_POLICY": "spread"}).mix == read_mix("spread")
    monkeypatch.setenv("PARTAGE_GPU_POLICY", "best")
    with pytest.raises(ValueError, match="PARTAGE_GPU_POLICY: policy 'best' is not known; allowed: one of"):
        GpuAllocator()


@pytest.mark.parametrize("policy", POLICIES)
def test_scores_are_between_0_and_1_even_where_more_is_taken_than_there_is(policy: str) -> None:
    fleet = Fleet(cards("a", 2), policy=policy, shapes=HALVES)
    fleet.place(pod(ask(900, cards=("a0",))), "one")
    slot, allocation = fleet.taken["one"]
    fleet.plugin.partage_take(slot, allocation)
    fleet.plugin.partage_node_room(slot, Resources(cpu_milli=1000), Resources(cpu_milli=-500))
    for request in (pod(ask(500)), pod(ask(100), ask(100)), pod(cpu_milli=100)):
        assert all(0 <= score <= 1 for score in fleet.scores(request))


def test_what_is_typical_is_learnt_from_each_pod_once() -> None:
    learnt = ShapeCounts()
    for _ in range(1000):
        assert learnt.from_pod(PodUid("same"), Shape(0, 1, 100)) is None
    found = [learnt.from_pod(PodUid(f"p{number}"), Shape(0, 1, 700)) for number in range(127)]
    typical = found[-1]
    assert found[:-1] == [None] * 126
    assert typical is not None
    assert typical[0].shape == Shape(0, 1, 700)


def test_an_allocator_that_learns_changes_shapes_only_where_others_are_asked_for() -> None:
    plugin = GpuAllocator(AllocatorSettings())
    numbers = count()

    def shapes(share: int, pods: int) -> set[Hashable]:
        return {plugin.partage_shape(pod(ask(share), uid=f"p{next(numbers)}")) for _ in range(pods)}

    assert len(shapes(300, 600)) == 2, "before and after the first 128"
    assert len(shapes(300, 5000)) == 1
    assert len(shapes(700, 10_000)) > 1


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6, unique=True), st.integers(0, 1))
def test_typical_shapes_are_told_again_when_more_than_one_pod_in_twenty_is_of_another(
    parts: list[int], more: int
) -> None:
    learnt = ShapeCounts()
    asked = [Shape(0, 1, 100 * part) for part in parts]
    found = [learnt.from_pod(PodUid(f"p{number}"), asked[number % len(asked)]) for number in range(128)]
    assert found[-1] is not None
    others = [Shape(0, 1, 950)] * (26 * more)
    again = [learnt.from_pod(PodUid(f"q{n}"), shape) for n, shape in enumerate([*others, *asked * 256][:256])]
    assert (again[-1] is not None) == bool(more)


def test_popular_shapes_are_those_that_most_pods_have() -> None:
    often, seldom, never = Shape(1, 1, 500), Shape(2, 1, 700), Shape(3, 8, 1000)
    typical = popular_shapes([often] * 90 + [seldom] * 6 + [never] * 4)
    assert [each.shape for each in typical] == [often, seldom, never]
    assert [round(each.fraction, 4) for each in typical] == [0.9375, 0.0625, 0.0]
    assert [each.frequency for each in typical] == [0.9, 0.06, 0.04]
