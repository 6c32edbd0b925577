"""Replays: arrivals, counts, and that a seed determines everything."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.simulation import FleetNode, Job, Protocol, Workload
from partage_cli.simulation.measures import Meter, MisCounted, taken_milli
from partage_cli.simulation.replay import arrivals, ordered
from partage_cli.simulation.runs import Replayer
from partage_cli.simulation.synthetic import ALL_SHARED, CHOOSY, CPU_HEAVY, MIXED, Mix, synthetic
from partage_cli.simulation.workloads import demand_milli, node_of, pod_ref, request_of
from partage_gpu.allocator.shapes import Shape, TypicalShape
from partage_plugins.api import (
    GPU,
    Allocation,
    CardId,
    ContainerName,
    ContainerRequest,
    GpuRequest,
    NodeName,
    PodRequest,
    PodUid,
    Resources,
    Role,
)
from support.objects import allocation, grant

ROOM = Resources(cpu_milli=10_000, memory_bytes=1 << 40)
SMALL = synthetic(6, seed=3)


def node(number: int, cards: int, model: str = "T4", cpu_milli: int = 10_000) -> FleetNode:
    total = Resources(cpu_milli=cpu_milli, memory_bytes=1 << 40)
    return node_of(number, f"n{number}", total, [model] * cards)


def granted(place: int, *shares: int) -> Allocation:
    """An allocation on node n0, one container, with a grant for each share, on card 0, on card 1 and so on."""
    grants = [grant(f"card-0-{card}", share, memory=0) for card, share in enumerate(shares) if share]
    return allocation(f"p{place}", "n0", *grants)


def asking(share: int = 500, count: int = 1, cpu_milli: int = 0) -> PodRequest:
    return request_of(Resources(cpu_milli=cpu_milli), GpuRequest(count=count, share_milli=share))


def test_the_same_seed_makes_the_same_run_and_another_another() -> None:
    replayer = Replayer(SMALL, Protocol(arrivals_percent=110))
    first, again, other = (replayer.run(Job("fgd", seed)) for seed in (42, 42, 43))
    assert first == again
    assert first.points != other.points


def test_each_step_of_arrivals_is_noted_up_to_the_end() -> None:
    run = Replayer(SMALL, Protocol(arrivals_percent=60, step_percent=20)).run(Job("binpack", 1))
    assert [point.arrived for point in run.points] == [20, 40, 60]
    assert all(point.allocated >= point.arrived - 1e-9 for point in run.points)
    assert run.unplaced == 0


def test_more_never_fits_than_there_is_and_a_full_fleet_says_so() -> None:
    run = Replayer(SMALL, Protocol(arrivals_percent=300)).run(Job("spread", 1))
    assert run.unplaced > 0
    assert [point.allocated for point in run.points] == sorted(point.allocated for point in run.points)
    assert run.points[-1].allocated <= 100


def test_every_pod_of_the_workload_arrives_once_before_any_comes_again() -> None:
    once = list(arrivals(SMALL, 1, 98))
    all_of_them = list(arrivals(SMALL, 1, 200))[: len(SMALL.requests)]
    assert sorted(map(repr, all_of_them)) == sorted(map(repr, SMALL.requests))
    assert once == all_of_them[: len(once)]


def test_a_seed_decides_the_order_of_arrival() -> None:
    first, again, other = (list(arrivals(SMALL, seed, 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first != list(SMALL.requests[: len(first)])


def test_what_arrives_reaches_the_wanted_percentage_and_little_more() -> None:
    asked = [demand_milli(request) for request in arrivals(SMALL, 5, 130)]
    assert sum(asked) * 100 >= 130 * SMALL.capacity_milli > sum(asked[:-1]) * 100


def test_pods_that_ask_for_nothing_arrive_once_and_end_the_replay() -> None:
    workload = Workload(origin="cpu alone", nodes=(node(0, 1),), requests=(request_of(ROOM, None),) * 3)
    assert len(list(arrivals(workload, 1, 130))) == 3


def test_a_seed_orders_names_and_changes_nothing_else_of_a_node() -> None:
    nodes = [node(number, number) for number in range(6)]
    found = ordered(nodes, 7)
    assert sorted(each.name for each in found) == [f"node-{number:06}" for number in range(6)]
    assert [each.inventory for each in found] == [each.inventory for each in nodes]
    assert [each.name for each in found] == [each.name for each in ordered(nodes, 7)]
    assert [each.name for each in found] != [each.name for each in ordered(nodes, 8)]


def test_what_is_allocated_is_counted_in_percent_of_all_cards() -> None:
    meter = Meter([node(0, 2)], ())
    meter.take(granted(1, 500, 1000), asking())
    assert (meter.allocated_percent, meter.idle_cards) == (75.0, 0)


def test_a_card_that_is_given_more_than_once_over_ends_the_replay() -> None:
    meter = Meter([node(0, 2)], ())
    meter.take(granted(1, 600), asking())
    with pytest.raises(MisCounted, match="card card-0-0 has 400 milli left, not 401"):
        meter.take(granted(2, 401), asking())
    assert meter.allocated_percent == 30.0


def test_cards_and_nodes_that_are_not_there_are_named() -> None:
    with pytest.raises(MisCounted, match="card card-0-1 is not on node n0"):
        Meter([node(0, 1)], ()).take(granted(1, 0, 5), asking())
    with pytest.raises(MisCounted, match="node n0 is not in the fleet"):
        Meter([node(1, 1)], ()).take(granted(1, 5), asking())


@pytest.mark.parametrize(
    ("roles", "most"),
    [(("app", "app"), 700), (("init", "app"), 400), (("init", "sidecar"), 400), (("sidecar", "init"), 700)],
)
def test_init_containers_take_a_card_before_the_others(roles: Sequence[Role], most: int) -> None:
    names, shares = (ContainerName("a"), ContainerName("b")), (300, 400)
    card = CardId("c")
    containers = {name: {GPU.name: (grant(card, share),)} for name, share in zip(names, shares, strict=True)}
    asked = tuple(
        ContainerRequest(name=name, role=role, asks=((GPU.name, GpuRequest(share_milli=share)),))
        for name, role, share in zip(names, roles, shares, strict=True)
    )
    allocation = Allocation(gen=1, pod=PodUid("p"), node=NodeName("n"), containers=containers)
    request = PodRequest(pod=pod_ref(1), containers=asked)
    assert taken_milli(allocation, request) == {card: most}
    assert demand_milli(request) == most


shapes = st.builds(
    Shape,
    cpu_milli=st.sampled_from([0, 4000, 11_000]),
    count=st.integers(0, 3),
    milli=st.sampled_from([200, 500, 1000]),
    models=st.sampled_from([(), ("T4",), ("P100",), ("P100", "T4")]),
)


@given(
    typical=st.lists(shapes, min_size=1, max_size=4),
    taken=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=1),
    cpu_milli=st.sampled_from([0, 5000, 9000]),
)
def test_fragments_are_what_typical_pods_cannot_use(
    typical: list[Shape], taken: list[tuple[int, int]], cpu_milli: int
) -> None:
    nodes = [node(0, 2), node(1, 3, "P100")]
    part = 1 / len(typical)
    meter = Meter(nodes, tuple(TypicalShape(shape, part) for shape in typical))
    left = {"n0": [1000, 1000], "n1": [1000, 1000, 1000]}
    cpu = {"n0": 10_000, "n1": 10_000}
    for place, shares in enumerate(taken):
        meter.take(granted(place, *shares), asking(cpu_milli=cpu_milli))
        left["n0"] = [milli - share for milli, share in zip(left["n0"], shares, strict=True)]
        cpu["n0"] -= cpu_milli
    useless = 0.0
    for name, model in (("n0", "T4"), ("n1", "P100")):
        for shape in typical:
            useless += part * _useless(left[name], cpu[name], model, shape)
    assert meter.fragment_percent == pytest.approx(100 * useless / 5000, abs=1e-6)


def _useless(left: list[int], cpu_milli: int, model: str, shape: Shape) -> int:
    """One node's milli that are useless to a shape: all if the pod does not fit, else those of too small cards."""
    usable = [milli for milli in left if milli >= shape.milli and (not shape.models or model in shape.models)]
    if not shape.count or len(usable) < shape.count or cpu_milli < shape.cpu_milli:
        return sum(left)
    return sum(left) - sum(usable)


@pytest.mark.parametrize("mix", [MIXED, CPU_HEAVY, CHOOSY, ALL_SHARED])
def test_a_synthetic_workload_has_the_statistics_that_it_promises(mix: Mix) -> None:
    workload = synthetic(150, mix=mix)
    asks = [next(iter(request.of(GPU).values()), None) for request in workload.requests]
    with_cards = [ask for ask in asks if ask]
    parts = sum(ask.share_milli < 1000 for ask in with_cards) / len(with_cards)
    assert 1 - len(with_cards) / len(asks) == pytest.approx(mix.without_cards, abs=0.05)
    assert parts == pytest.approx(mix.shared, abs=0.06)
    assert sum(bool(ask.models) for ask in with_cards) / len(with_cards) == pytest.approx(mix.choosy, abs=0.06)
    demand = sum(map(demand_milli, workload.requests))
    assert 0.97 * workload.capacity_milli < demand < 1.1 * workload.capacity_milli


def test_a_synthetic_workload_is_the_same_for_the_same_seed() -> None:
    assert synthetic(5, seed=1) == synthetic(5, seed=1) != synthetic(5, seed=2)
