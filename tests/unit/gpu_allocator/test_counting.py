"""Nothing is granted twice, released grants are free again, and counts depend only on current grants."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import Card, GpuRequest, PodRequest, Role, Slot, Tags
from partage_plugins.api.usage import peak, usages
from support.gpu_fleet import GIB, Fleet, ask, card, cards, grants_of, pod

POLICIES = ("binpack", "spread", "kubeshare", "fgd", "fgd+", "topology", "fgd+:2,topology:1")
TAG = st.sampled_from([None, None, None, "x", "y"])
ASKS = st.builds(
    GpuRequest,
    count=st.integers(1, 3),
    share_milli=st.sampled_from([0, 1, 100, 333, 500, 667, 999, 1000]),
    memory_bytes=st.sampled_from([None, None, 1, 4 * GIB, 11 * GIB, 16 * GIB]),
    tags=st.builds(Tags, affinity=TAG, anti_affinity=TAG, exclusion=TAG),
    models=st.sampled_from([(), (), ("T4",), ("T4", "A10")]),
    cards_not=st.sampled_from([(), (), ("a0",)]),
    memory_milli=st.sampled_from([None, None, 0, 300, 1000]),
    idle_cards=st.sampled_from([False, False, False, True]),
    spare_share=st.booleans(),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(("app", "app", "init", "sidecar"))
PODS = st.lists(st.tuples(ASKS, ROLES), min_size=1, max_size=4).map(
    lambda pairs: pod(*(each for each, _ in pairs), roles=[role for _, role in pairs])
)
NODES: tuple[list[Card], ...] = (
    [*cards("a", 2), card("a9", health="degraded: hot")],
    [card("b0", model="A10", gib=24), card("b1", gib=8), card("b2", pool="kubelet")],
    [],
    cards("d", 3, numa_node=1),
)


@pytest.mark.slow
def test_a_card_is_never_given_more_than_it_has_at_any_time_of_its_pods_lives() -> None:
    @given(st.lists(st.tuples(PODS, st.integers(0, 9)), max_size=15), st.sampled_from(POLICIES))
    def holds(steps: list[tuple[PodRequest, int]], policy: str) -> None:
        fleet = Fleet(*NODES, policy=policy)
        for request, luck in steps:
            fleet.place(request)
            if luck < 3 and fleet.taken:
                fleet.give_back(sorted(fleet.taken)[luck % len(fleet.taken)])
            check_room(fleet)

    holds()


def check_room(fleet: Fleet) -> None:
    """Adds up grants by the pods' roles, card by card, independently of the allocator's counting."""
    share: defaultdict[str, int] = defaultdict(int)
    memory: defaultdict[str, int] = defaultdict(int)
    for _, allocation in fleet.taken.values():
        by_card: defaultdict[str, list[tuple[Role, int, int]]] = defaultdict(list)
        for grant in grants_of(allocation):
            by_card[grant.card].append((grant.role, grant.share_milli, grant.memory_bytes))
        for name, held in by_card.items():
            stays = [each for each in held if each[0] == "sidecar"]
            moments = [[each for each in held if each[0] != "init"]]
            moments += [[each, *stays] for each in held if each[0] == "init"]
            share[name] += max(sum(milli for _, milli, _ in moment) for moment in moments)
            memory[name] += max(sum(size for _, _, size in moment) for moment in moments)
    known = {str(each.id): each for of_node in NODES for each in of_node}
    for name, milli in share.items():
        assert known[name].is_allocatable
        assert milli <= 1000
        assert memory[name] <= known[name].memory_bytes


@pytest.mark.slow
@given(st.lists(PODS, max_size=12), st.randoms(use_true_random=False), st.sampled_from(POLICIES))
def test_giving_back_in_any_order_restores_exactly(pods: list[PodRequest], luck: random.Random, policy: str) -> None:
    fleet = Fleet(*NODES, policy=policy)
    for request in pods[: len(pods) // 2]:
        fleet.place(request)
    before, there = fleet.state(), set(fleet.taken)
    for request in pods[len(pods) // 2 :]:
        fleet.place(request)
    new = sorted(set(fleet.taken) - there)
    for name in luck.sample(new, len(new)):
        fleet.give_back(name)
    assert fleet.state() == before


@pytest.mark.slow
@given(st.lists(PODS, max_size=12), st.randoms(use_true_random=False))
def test_a_replay_in_any_order_ends_in_the_same_state(pods: list[PodRequest], luck: random.Random) -> None:
    fleet = Fleet(*NODES)
    for request in pods:
        fleet.place(request)
    again = Fleet(*NODES)
    names = sorted(fleet.taken)
    for name in luck.sample(names, len(names)):
        again.take(*fleet.taken[name], name)
    assert again.state() == fleet.state()
    for slot in (0, 3):
        again.plugin.partage_node_removed(Slot(slot))
        again.add(Slot(slot), NODES[slot])
        for at, allocation in fleet.taken.values():
            if at == slot:
                again.plugin.partage_take(at, allocation)
    assert again.state() == fleet.state()


@pytest.mark.slow
@given(st.lists(PODS, max_size=10), st.permutations(range(3)), st.sampled_from(POLICIES))
def test_nodes_in_another_order_are_worth_the_same(pods: list[PodRequest], order: Sequence[int], policy: str) -> None:
    nodes = [NODES[place] for place in (0, 1, 3)]
    plain, mixed = Fleet(*nodes, policy=policy), Fleet(*(nodes[place] for place in order), policy=policy)
    for request in pods:
        fitting = plain.fitting(request)
        assert fitting == sorted(Slot(order[slot]) for slot in mixed.fitting(request))
        if not fitting:
            continue
        scores = dict(zip(range(3), plain.scores(request), strict=True))
        others = {order[slot]: score for slot, score in enumerate(mixed.scores(request))}
        assert {slot: scores[slot] for slot in fitting} == {slot: others[slot] for slot in fitting}
        slot = plain.best(request)
        assert slot is not None
        there = Slot(list(order).index(slot))
        assert plain.place_on(slot, request) == mixed.place_on(there, request), "the same cards of the same node"


def test_what_is_on_a_card_that_pods_may_not_be_given_is_not_counted() -> None:
    fleet = Fleet(cards("a", 1))
    fleet.place(pod(ask(600)), "old")
    slot, allocation = fleet.taken["old"]
    fleet.plugin.partage_node_removed(slot)
    fleet.add(slot, [card("a0", health="lost"), card("a1")])
    fleet.plugin.partage_take(slot, allocation)
    assert fleet.place(pod(ask(1000))) == ["a1"]
    fleet.give_back("old")
    assert fleet.place(pod(ask(1))) is None


def test_more_nodes_and_larger_ones_than_were_expected_lose_nothing() -> None:
    fleet = Fleet(cards("a", 1))
    fleet.place(pod(ask(600)))
    for number in range(1, 40):
        fleet.add(Slot(number), cards(f"n{number}-", 9 if number == 39 else 1))
    assert fleet.place(pod(ask(1000, count=9))) == [f"n39-{place}" for place in range(9)]
    assert fleet.fitting(pod(ask(401)))[0] == 1
    assert fleet.fitting(pod(ask(400)))[0] == 0


def test_an_absurd_amount_of_memory_overflows_nothing() -> None:
    fleet = Fleet([card("a0", gib=2**32)], policy="fgd+")
    assert fleet.place(pod(ask(500))) == ["a0"]
    assert fleet.place(pod(ask(500))) == ["a0"]
    assert fleet.place(pod(ask(1))) is None


@given(st.lists(st.tuples(ROLES, st.integers(0, 9)), max_size=6))
def test_the_peak_is_the_largest_sum_of_what_runs_together(amounts: list[tuple[str, int]]) -> None:
    stays = sum(amount for role, amount in amounts if role == "sidecar")
    apps = sum(amount for role, amount in amounts if role == "app")
    first = [amount for role, amount in amounts if role == "init"]
    assert peak(amounts) == max([stays + apps, *(stays + amount for amount in first)])


def test_an_init_container_uses_the_card_that_the_app_will_have() -> None:
    fleet = Fleet(cards("a", 2))
    both = pod(ask(800), ask(900), roles=["app", "init"])
    assert fleet.place(both, "both") == ["a0", "a0"]
    (usage,) = usages(fleet.taken["both"][1])
    assert (usage.share_milli, usage.holders) == (900, 2)
    assert fleet.place(pod(ask(100))) == ["a0"]
