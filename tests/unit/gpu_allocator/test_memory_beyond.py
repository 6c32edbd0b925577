"""Movable pods may be promised more memory than a card has, and every promise can be kept at any time."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_plugins.api import GPU, Card, CardId, ContainerRequest, GpuRequest, PodRequest, Role, Slot
from partage_plugins.api.card_memory import STAYS_BYTES
from partage_plugins.errors import Refused
from support.gpu_fleet import GIB, Fleet, ask, card, grants_of, pod

NODES: tuple[list[Card], ...] = (
    [card("a0")],
    [card("b0", beyond_bytes=8 * GIB), card("b1", beyond_bytes=16 * GIB)],
    [card("c0", beyond_bytes=3 * GIB)],
)
ASKS = st.builds(
    GpuRequest,
    count=st.sampled_from([1, 1, 1, 2]),
    memory_bytes=st.sampled_from([0, GIB, 3 * GIB, 6 * GIB, 10 * GIB, 16 * GIB]),
    movable=st.booleans(),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(("app", "app", "init", "sidecar"))
PODS = st.lists(st.tuples(ASKS, ROLES), min_size=1, max_size=4).map(
    lambda pairs: pod(*(each for each, _ in pairs), roles=[role for _, role in pairs])
)
POLICIES = st.sampled_from(("binpack", "spread", "kubeshare", "fgd", "fgd+"))


class Given(NamedTuple):
    role: Role
    size: int
    movable: bool


def moments(held: Sequence[Given]) -> Iterator[list[Given]]:
    """The grants of one pod that are in use at the same time on a card, for each phase of its life."""
    yield [each for each in held if each.role != "init"]
    stays = [each for each in held if each.role == "sidecar"]
    yield from ([each, *stays] for each in held if each.role == "init")


def total(held: Sequence[Given]) -> int:
    return sum(each.size for each in held)


def fixed(held: Sequence[Given]) -> int:
    return sum(stays(each) for each in held)


def stays(given: Given) -> int:
    """What stays on the card: of a movable container, its contexts and code."""
    return min(given.size, STAYS_BYTES) if given.movable else given.size


def keeps(of_card: Card, pods: Sequence[Sequence[Given]]) -> bool:
    """Checks each phase: every movable pod gets its turn while all others keep the most that they may."""
    if sum(max(map(total, moments(held))) for held in pods) > of_card.memory_bytes + of_card.beyond_bytes:
        return False
    most = [max(map(fixed, moments(held))) for held in pods]
    if sum(most) > of_card.memory_bytes:
        return False
    for held, mine in zip(pods, most, strict=True):
        for moment in moments(held):
            turn = max((each.size - stays(each) for each in moment), default=0)
            if sum(most) - mine + fixed(moment) + turn > of_card.memory_bytes:
                return False
    return True


def on_cards(fleet: Fleet) -> dict[str, list[list[Given]]]:
    found: defaultdict[str, list[list[Given]]] = defaultdict(list)
    for _, allocation in fleet.taken.values():
        by_card: defaultdict[str, list[Given]] = defaultdict(list)
        for grant in grants_of(allocation):
            by_card[grant.card].append(Given(grant.role, grant.memory_bytes, grant.movable))
        for name, held in by_card.items():
            found[name].append(held)
    return found


@pytest.mark.slow
@given(st.lists(st.tuples(PODS, st.integers(0, 9)), max_size=15), POLICIES)
def test_every_promise_can_be_kept_at_any_time_of_the_pods_lives(
    steps: list[tuple[PodRequest, int]], policy: str
) -> None:
    fleet = Fleet(*NODES, policy=policy)
    for request, luck in steps:
        fleet.place(request)
        if luck < 3 and fleet.taken:
            fleet.give_back(sorted(fleet.taken)[luck % len(fleet.taken)])
        for of_card in (each for of_node in NODES for each in of_node):
            assert keeps(of_card, on_cards(fleet)[str(of_card.id)])


@pytest.mark.slow
@given(st.lists(PODS, max_size=8), PODS.filter(lambda request: len(request.containers) <= 2))
def test_a_pod_fits_exactly_where_some_choice_of_cards_keeps_every_promise(
    steps: list[PodRequest], last: PodRequest
) -> None:
    fleet = Fleet(*NODES)
    for request in steps:
        fleet.place(request)
    held = on_cards(fleet)
    wants: list[tuple[Role, GpuRequest]] = [(each.role, wish_of(each)) for each in last.containers]
    assert fleet.fitting(last) == [slot for slot, of_node in enumerate(NODES) if any(choices(of_node, wants, held))]


def wish_of(container: ContainerRequest) -> GpuRequest:
    wish = container.of(GPU)
    assert wish is not None
    return wish


def choices(
    of_node: Sequence[Card], wants: Sequence[tuple[Role, GpuRequest]], held: Mapping[str, list[list[Given]]]
) -> Iterator[bool]:
    """Whether all promises are kept, for each way to assign cards of the node to the containers."""
    ways = [combinations(of_node, wish.count) for _, wish in wants]
    for way in product(*ways):
        mine = defaultdict[str, list[Given]](list)
        for (role, wish), chosen in zip(wants, way, strict=True):
            for each in chosen:
                mine[str(each.id)].append(Given(role, wish.memory_bytes or 0, wish.movable))
        yield all(
            keeps(each, [*held.get(str(each.id), []), mine[str(each.id)]]) for each in of_node if mine[str(each.id)]
        )


@pytest.mark.slow
@given(st.lists(PODS, max_size=12), st.randoms(use_true_random=False))
def test_giving_all_back_leaves_the_cards_as_they_were(steps: list[PodRequest], luck: random.Random) -> None:
    fleet = Fleet(*NODES)
    before = beyond_of(fleet)
    for request in steps:
        fleet.place(request)
    names = sorted(fleet.taken)
    luck.shuffle(names)
    for name in names:
        fleet.give_back(name)
    assert beyond_of(fleet) == before


@pytest.mark.slow
@given(st.lists(PODS, max_size=8))
def test_a_node_that_comes_again_with_its_pods_is_as_before(steps: list[PodRequest]) -> None:
    fleet = Fleet(*NODES)
    for request in steps:
        fleet.place(request)
    again = Fleet(*NODES)
    for slot, allocation in reversed(list(fleet.taken.values())):
        again.take(slot, allocation)
    assert beyond_of(again) == beyond_of(fleet)


def beyond_of(fleet: Fleet) -> dict[str, object]:
    cluster = fleet.plugin.cluster
    arrays = {name: getattr(cluster, name)[fleet.slots].tolist() for name in ("more_within", "more_beside", "turn")}
    return {**fleet.state(), **arrays}


def test_a_node_that_takes_the_place_of_another_has_nothing_of_its_promises() -> None:
    fleet = Fleet([card("a0", beyond_bytes=GIB)], [card("b0", beyond_bytes=8 * GIB)])
    fleet.place_on(Slot(1), moving(16))
    fleet.plugin.partage_node_removed(Slot(1))
    fleet.add(Slot(1), [card("c0", gib=8)])
    fleet.place_on(Slot(1), pod(ask(gib=4)))
    assert fleet.fitting(moving(4)) == [0, 1]


@pytest.mark.slow
@given(st.lists(PODS, max_size=10))
def test_where_nothing_is_promised_beyond_what_moves_counts_like_what_stays(steps: list[PodRequest]) -> None:
    plain = ([card("a0"), card("a1")], [card("b0", gib=8)])
    one, other = Fleet(*plain), Fleet(*plain)
    for request in steps:
        assert one.place(request) == other.place(staying(request))


def staying(request: PodRequest) -> PodRequest:
    containers = tuple(
        replace(each, asks=((GPU.name, replace(wish_of(each), movable=False)),)) for each in request.containers
    )
    return replace(request, containers=containers)


def test_two_that_move_are_on_a_card_that_has_room_for_one_and_none_that_stays_joins_them() -> None:
    fleet = Fleet([card("a0", gib=8, beyond_bytes=8 * GIB)])
    assert fleet.place(moving(6)) == ["a0"]
    assert fleet.place(moving(6)) == ["a0"]
    assert fleet.place(pod(ask(gib=2))) is None
    assert fleet.place(pod(ask(gib=1))) == ["a0"]
    assert fleet.place(moving(1)) == ["a0"]
    assert fleet.place(moving(2)) is None


def test_lack_of_memory_is_told_by_the_figures_of_the_card_that_has_most_left() -> None:
    fleet = Fleet([card("a0", gib=8, beyond_bytes=8 * GIB), card("a1", gib=4, beyond_bytes=GIB)])
    assert [fleet.place(moving(6)) for _ in range(2)] == [["a0"], ["a0"]]
    assert fleet.why_not(pod(ask(gib=5))) == [
        (
            "Insufficient GPU memory (card 4 GiB, beyond 1 GiB, promised 0 GiB, of which 0 GiB stay there, "
            "and a turn takes 0 GiB)"
        )
    ]
    assert fleet.place(moving(4)) == ["a0"]
    assert fleet.place(moving(4)) == ["a1"]
    assert fleet.why_not(pod(ask(gib=3))) == [
        (
            "Insufficient GPU memory (card 8 GiB, beyond 8 GiB, promised 16 GiB, of which 1.5 GiB stay there, "
            "and a turn takes 5.5 GiB)"
        )
    ]


def test_the_figures_are_those_of_a_card_that_is_wanted() -> None:
    fleet = Fleet([card("a0", gib=8, beyond_bytes=GIB), card("a1", gib=9, model="A10", beyond_bytes=GIB)])
    assert fleet.place(moving(6)) == ["a0"]
    for wish in (ask(gib=5, cards=(CardId("a0"),)), ask(gib=5, models=("T4",))):
        (why,) = fleet.why_not(pod(wish))
        assert why.startswith("Insufficient GPU memory (card 8 GiB, beyond 1 GiB, promised 6 GiB")


def test_where_nothing_is_promised_beyond_lack_of_memory_has_no_figures() -> None:
    assert Fleet([card("a0")]).why_not(moving(17)) == ["Insufficient GPU memory"]


def test_what_moves_is_no_larger_than_the_card_beside_what_stays() -> None:
    fleet = Fleet([card("a0", gib=8, beyond_bytes=80 * GIB)])
    assert fleet.place(moving(9)) is None
    assert fleet.place(pod(ask(gib=3))) == ["a0"]
    assert fleet.place(moving(6)) is None
    assert fleet.place(moving(5)) == ["a0"]


def test_a_pod_of_which_one_container_moves_has_both_on_one_card() -> None:
    fleet = Fleet([card("a0", gib=8, beyond_bytes=8 * GIB)])
    assert fleet.place(pod(ask(gib=3), ask(gib=4, movable=True))) == ["a0", "a0"]
    assert fleet.place(pod(ask(gib=4, movable=True), ask(gib=4, movable=True))) == ["a0", "a0"]
    assert fleet.place(moving(1)) is None


def test_several_grants_on_one_card_do_not_move() -> None:
    twice = pod(ask(gib=1, count=2, movable=True, repeats_cards=True))
    with pytest.raises(Refused, match=r"container c0 has memory that moves \(partage.dev/movable\)"):
        Fleet(*NODES).fitting(twice)


def moving(gib: int) -> PodRequest:
    return pod(ask(gib=gib, movable=True))
