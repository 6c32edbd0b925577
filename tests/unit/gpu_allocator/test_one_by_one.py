"""Few nodes are scored one by one, many as arrays: both give a node the same score, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_gpu.allocator import plugin as allocator
from partage_gpu.allocator.shapes import Shape, TypicalShape
from partage_plugins.api import PodRequest, Resources, Slot
from support.extent import examples
from support.gpu_fleet import Fleet, ask, cards, pod

SHAPES = st.builds(
    Shape,
    cpu_milli=st.sampled_from([0, 1000, 3300, 8000]),
    count=st.integers(1, 3),
    milli=st.sampled_from([110, 333, 500, 1000]),
    models=st.sampled_from([(), ("T4",), ("A100", "T4"), ("H100",)]),
)
PODS = st.builds(
    lambda milli, gib, cpu, has_cards, wishes: pod(
        *([ask(milli, gib=gib, **wishes)] if has_cards else []), cpu_milli=cpu
    ),
    milli=st.sampled_from([0, 50, 333, 500, 1000]),
    gib=st.sampled_from([None, 1, 5, 16]),
    cpu=st.sampled_from([0, 100, 2000, 9000]),
    has_cards=st.sampled_from([True, True, True, False]),
    wishes=st.sampled_from([{}, {}, {"memory_milli": 300}, {"idle_cards": True}, {"spare_share": True}]),
)


def answers(fleet: Fleet, wanted: PodRequest, monkeypatch: pytest.MonkeyPatch, few: int) -> tuple[object, ...]:
    """The nodes that fit, each node's score, and the cards that would be chosen on each."""
    monkeypatch.setattr(allocator, "FEW", few)
    fleet.plugin.partage_shape(wanted)
    fitting = fleet.fitting(wanted)
    scores = fleet.plugin.partage_scores(wanted, np.array(fitting, np.int32)).tobytes() if fitting else b""
    return fitting, scores, [fleet.allocation(wanted, slot) for slot in fitting]


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    st.lists(SHAPES, min_size=1, max_size=12, unique=True),
    st.lists(st.tuples(PODS, st.integers(0, 3)), max_size=8),
    st.lists(PODS, min_size=1, max_size=4),
    st.sampled_from([500, 9000, 64_000]),
)
def test_nodes_are_worth_the_same_on_both_ways(
    shapes: list[Shape], taken: list[tuple[PodRequest, int]], asked: list[PodRequest], cpu_milli: int
) -> None:
    typical = tuple(TypicalShape(shape, 1 / len(shapes), 1 / len(shapes)) for shape in shapes)
    fleet = Fleet(cards("a", 4), cards("b", 4, model="A100"), cards("c", 1, gib=32), [], shapes=typical, policy="fgd+")
    for slot in range(4):
        fleet.plugin.partage_node_room(
            Slot(slot), Resources(cpu_milli=64_000), Resources(cpu_milli=cpu_milli * (slot + 1))
        )
    for number, (wanted, slot) in enumerate(taken):
        if Slot(slot) in fleet.fitting(wanted):
            fleet.place_on(Slot(slot), wanted, f"p{number}")
    with pytest.MonkeyPatch.context() as patch:
        for wanted in asked:
            assert answers(fleet, wanted, patch, few=12) == answers(fleet, wanted, patch, few=0)


def test_a_node_without_a_possible_card_is_worth_less_than_nothing() -> None:
    fleet = Fleet(cards("a", 1), policy="fgd+")
    fleet.place_on(Slot(0), pod(ask(600), uid="other"))
    assert fleet.plugin.partage_scores(pod(ask(600)), np.array([0], np.int32))[0] < 0
