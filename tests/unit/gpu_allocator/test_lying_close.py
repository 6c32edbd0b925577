"""Cards that are required to be close are, or the pod does not fit and the node's reason says what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins import Refused
from partage_plugins.api import GPU, Card, GpuPart, GpuRequest, PodRequest, Slot
from partage_plugins.api.gpu import CLOSEST, NUMA, NVLINK, PCIE
from partage_plugins.api.topology import Bundle
from partage_plugins.rules.levels import card_levels
from support.gpu_fleet import Fleet, ask, card, pod

WHOLE = 1000


def board(prefix: str, *, switches: int = 4, sockets: int = 2, number: int = 8) -> list[Card]:
    """Cards in equal groups behind switches and on NUMA nodes, in their order."""
    return [
        card(f"{prefix}{place}", pcie_switch=place * switches // number, numa_node=place * sockets // number)
        for place in range(number)
    ]


def close(level: str, count: int, parts: tuple[Bundle, ...] = (), milli: int = WHOLE) -> GpuRequest:
    return ask(milli, count=count, bundles=(Bundle(level, count, parts),))


def holding(fleet: Fleet, *names: str) -> None:
    for name in names:
        fleet.place(pod(ask(WHOLE, cards=(name,))))


def test_all_cards_lie_behind_one_switch() -> None:
    fleet = Fleet(board("a"))
    holding(fleet, "a0", "a3")
    assert fleet.place(pod(close(PCIE, 2))) == ["a4", "a5"]
    assert fleet.place(pod(close(PCIE, 2))) == ["a6", "a7"]
    assert fleet.place(pod(close(PCIE, 2))) is None
    assert fleet.place(pod(close(NUMA, 2))) == ["a1", "a2"]


def test_a_group_that_is_broken_already_is_taken_before_a_whole_one() -> None:
    fleet = Fleet(board("a", number=9, switches=2, sockets=1))
    holding(fleet, "a8")
    assert fleet.place(pod(close(PCIE, 2))) == ["a5", "a6"]


def test_every_two_cards_joined_by_nvlink_are_joined_directly() -> None:
    """In a square no three corners are all joined."""
    links = ((0, 2, 0, 2), (2, 0, 2, 0), (0, 2, 0, 2), (2, 0, 2, 0))
    fleet = Fleet()
    fleet.add(Slot(0), board("a", number=4), links)
    assert fleet.fitting(pod(close(NVLINK, 2)))
    assert fleet.why_not(pod(close(NVLINK, 3))) == ["node(s) had too few cards joined by NVLink"]


def test_what_the_driver_does_not_say_is_not_promised() -> None:
    fleet = Fleet([card(f"a{place}") for place in range(4)])
    assert not fleet.fitting(pod(close(NVLINK, 2)))
    assert not fleet.fitting(pod(close(PCIE, 2)))
    assert fleet.fitting(pod(close(NUMA, 4))), "a machine that names no NUMA node has one"


def test_instances_of_one_gpu_lie_close_but_for_nvlink() -> None:
    parts = [card(f"a{place}", parent=f"g{place // 2}", numa_node=0) for place in range(4)]
    fleet = Fleet(parts)
    assert fleet.place(pod(close(PCIE, 2))) == ["a0", "a1"]
    assert not fleet.fitting(pod(close(NVLINK, 2)))


@pytest.mark.parametrize(
    ("level", "count", "reason"),
    [
        (PCIE, 3, "node(s) had too few cards behind one PCIe switch"),
        (NUMA, 5, "node(s) had too few cards on one NUMA node"),
        (PCIE, 2, "node(s) had too few free cards behind one PCIe switch"),
        (NUMA, 3, "node(s) had too few free cards on one NUMA node"),
        (NUMA, 9, "node(s) had too few healthy cards to share"),
    ],
)
def test_a_node_says_what_it_lacks(level: str, count: int, reason: str) -> None:
    fleet = Fleet(board("a"))
    holding(fleet, "a0", "a3", "a4", "a7")
    assert fleet.why_not(pod(close(level, count))) == [reason]


def test_only_a_lack_that_lasts_is_called_lasting() -> None:
    fleet = Fleet(board("a"))
    holding(fleet, "a0", "a3", "a4", "a7")
    for request, lasts in ((close(PCIE, 3), True), (close(PCIE, 2), False)):
        _, codes, reasons = fleet.plugin.partage_fits(pod(request), fleet.slots)
        found = codes() if callable(codes) else codes
        assert reasons[found[0]].lasts is lasts


def test_parts_of_a_bundle_lie_closer_yet() -> None:
    pairs = (Bundle(PCIE, 2), Bundle(PCIE, 2))
    fleet = Fleet(board("a"), board("b"))
    holding(fleet, "a1", "a6")
    assert fleet.place(pod(close(NUMA, 4, pairs))) == ["b0", "b1", "b2", "b3"]


def test_closest_is_what_the_best_node_of_the_cluster_can() -> None:
    fleet = Fleet(board("a", switches=8))
    request = pod(close(CLOSEST, 2))
    before = fleet.plugin.partage_shape(request)
    assert fleet.fitting(request) == [0], "no node has two behind one switch: one NUMA node is the closest there is"
    fleet.add(Slot(1), board("b"))
    assert fleet.fitting(request) == [1]
    assert fleet.plugin.partage_shape(request) != before, "the core must ask again"
    assert fleet.fitting(pod(close(CLOSEST, 3))) == [0, 1], "three lie behind no switch"
    assert not fleet.fitting(pod(close(CLOSEST, 5)))


def test_cards_that_repeat_can_not_lie_close() -> None:
    fleet = Fleet(board("a"))
    with pytest.raises(Refused, match="asks for cards close to each other"):
        fleet.fitting(pod(ask(100, count=2, repeats_cards=True, bundles=(Bundle(PCIE, 2),))))


def is_close(part: GpuPart, names: Sequence[str], wanted: GpuRequest) -> bool:
    levels = card_levels(part).by_name
    places = [place for place, each in enumerate(part.cards) if each.id in names]
    return all(len({levels[bundle.level][place] for place in places}) == 1 for bundle in wanted.bundles)


@st.composite
def pods(draw: st.DrawFn) -> PodRequest:
    """One or two containers, most of which require close cards."""
    asks = []
    for _ in range(draw(st.integers(1, 2))):
        count, milli = draw(st.integers(1, 3)), draw(st.sampled_from([400, 600, 1000]))
        level = draw(st.sampled_from([PCIE, NUMA, None]))
        asks.append(ask(milli, count=count) if level is None else close(level, count, milli=milli))
    return pod(*asks)


SWITCHES = st.lists(st.integers(0, 2), min_size=2, max_size=6)


@given(SWITCHES, st.sets(st.integers(0, 5)), pods())
def test_it_fits_exactly_where_some_choice_of_close_cards_works(
    switches: list[int], held: set[int], request: PodRequest
) -> None:
    node = [card(f"a{place}", pcie_switch=each, numa_node=each // 2) for place, each in enumerate(switches)]
    part = GpuPart(driver="580", cuda="13.0", cards=tuple(node))
    fleet = Fleet(node)
    left: dict[str, int] = {each.id: 1000 for each in node}
    for place in held:
        if place < len(node):
            fleet.place_on(Slot(0), pod(ask(500, cards=(node[place].id,))))
            left[node[place].id] = 500
    asks = [each for container in request.containers for _, each in container.asks if isinstance(each, GpuRequest)]

    def works(number: int, room: dict[str, int]) -> bool:
        if number == len(asks):
            return True
        wanted = asks[number]
        for names in combinations(room, wanted.count):
            less = {name: milli - wanted.share_milli * (name in names) for name, milli in room.items()}
            if min(less.values()) >= 0 and is_close(part, names, wanted) and works(number + 1, less):
                return True
        return False

    fits = bool(fleet.fitting(request))
    assert fits == works(0, dict(left))
    if fits:
        allocation = fleet.allocation(request, Slot(0))
        for container, wanted in request.of(GPU).items():
            names = [grant.card for grant in allocation.of(GPU)[container]]
            assert len(set(names)) == wanted.count
            assert is_close(part, names, wanted)
