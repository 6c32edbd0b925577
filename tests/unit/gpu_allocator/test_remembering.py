"""Results cached between the steps of a decision equal freshly computed ones."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.memo import BestCards
from partage_gpu.allocator.mix import POLICIES
from partage_gpu.allocator.needs import needs_of
from partage_plugins.api import Slot
from partage_plugins.api.gpu import GpuRequest
from support.gpu_fleet import Fleet, ask, cards, pod

LINKS = ((0, 4, 1, 1), (4, 0, 1, 1), (1, 1, 0, 4), (1, 1, 4, 0))


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from([100, 250, 500, 900, 1000]), st.integers(0, 3)), max_size=12),
    st.sampled_from([*POLICIES, "fgd+:2,topology:1"]),
)
def test_the_card_that_is_remembered_from_scoring_is_the_one_that_choosing_anew_would_take(
    asked: list[tuple[int, int]], policy: str
) -> None:
    """Pods come and go; after each, every node's choice of card is computed with and without the cache."""
    fleet = Fleet(policy=policy)
    for slot in range(2):
        fleet.add(Slot(slot), cards(f"n{slot}-", 4), LINKS)
    for number, (milli, gone) in enumerate(asked):
        wanted = pod(ask(milli), uid=f"p{number}", cpu_milli=1000)
        fleet.plugin.partage_shape(wanted)
        fitting = fleet.fitting(wanted)
        if fitting:
            slots = np.array(fitting, np.int32)
            fleet.plugin.partage_scores(wanted, slots)
        for slot in fitting:
            remembered = fleet.allocation(wanted, slot)
            memory, fleet.plugin.bests = fleet.plugin.bests, BestCards()
            assert fleet.allocation(wanted, slot) == remembered
            fleet.plugin.bests = memory
        if fitting:
            fleet.place_on(fitting[0], wanted, f"p{number}")
        if f"p{number - gone}" in fleet.taken:
            fleet.give_back(f"p{number - gone}")


def test_what_was_possible_is_asked_anew_when_a_node_changed_or_others_are_asked_for() -> None:
    fleet = Fleet(cards("a", 1), cards("b", 1))
    wanted = pod(ask(600))
    fleet.plugin.partage_shape(wanted)
    assert fleet.fitting(wanted) == [0, 1]
    fleet.place_on(Slot(0), pod(ask(600), uid="other"))
    both = np.array([0, 1], np.int32)
    assert fleet.plugin.partage_scores(wanted, both)[0] < 0, "it does not fit any more"
    assert fleet.fitting(wanted) == [1]
    assert fleet.plugin.partage_scores(wanted, both)[0] < 0


@pytest.mark.slow
def test_what_requests_need_is_remembered_within_bytes() -> None:
    cluster = Cluster()
    tracemalloc.start()
    try:
        for number in range(500):
            names = tuple(f"{number}-{each}-".ljust(120, "m") for each in range(256))
            needs_of(cluster, GpuRequest(share_milli=1, models=names))
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 12 << 20
