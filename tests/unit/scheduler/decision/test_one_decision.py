"""One pod: its node, its devices, and the message when there is no room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from partage_plugins import Refused, hookimpl
from partage_plugins.answers import Scores, Slots
from partage_plugins.api import ContainerName, NodeName, PodRequest, PodUid, Resources, Slot
from partage_plugins.api.reasons import SAID
from partage_plugins.errors import PluginFailed
from partage_scheduler.decision import FilteredNodes
from support.sides import MAIN, THING, Thing
from unit.scheduler.piles import GIB, TOO_FEW, Piles, World, node_of, wanting


def test_a_pod_gets_the_best_node_and_its_devices() -> None:
    decision = World(a=5, b=2, c=3).decider.decide(wanting(2))
    assert decision is not None
    assert decision.node == "b"
    assert [thing.id for thing in decision.grants[MAIN][THING.name]] == ["t0", "t1"]


def test_a_decision_alone_takes_nothing() -> None:
    world = World(a=2)
    assert [node_of(world.decider, wanting(2)) for _ in range(3)] == ["a"] * 3


def test_what_is_taken_is_no_longer_given() -> None:
    world = World(a=2)
    assert [world.place(wanting(2, pod=pod)) for pod in ("p1", "p2")] == ["a", None]


def test_what_is_given_back_is_given_again() -> None:
    world = World(a=2)
    world.place(wanting(2, cpu_milli=8000, pod="p1"))
    assert world.decider.give_back(PodUid("p1"))
    assert world.place(wanting(2, cpu_milli=8000, pod="p2")) == "a"


def test_giving_back_what_nobody_holds_is_said_and_changes_nothing() -> None:
    world = World(a=2)
    assert not world.decider.give_back(PodUid("never"))
    assert world.place(wanting(2)) == "a"


def test_among_equal_nodes_the_first_by_name_is_chosen() -> None:
    assert World(c=2, a=2, b=2).place(wanting(1)) == "a"


def test_a_pod_without_devices_is_placed_by_cpu_and_memory() -> None:
    world = World()
    world.add("small", 9, Resources(cpu_milli=1000, memory_bytes=GIB))
    world.add("large", 0, Resources(cpu_milli=4000, memory_bytes=4 * GIB))
    assert world.place(wanting(0, cpu_milli=2000, pod="p1")) == "large"
    assert world.place(wanting(0, memory_bytes=3 * GIB, pod="p2")) == "large"
    assert world.place(wanting(0, memory_bytes=2 * GIB, pod="p3")) is None
    assert world.decider.free(NodeName("large")) == Resources(cpu_milli=2000, memory_bytes=GIB)


def test_a_node_with_too_little_memory_is_not_chosen_however_good_its_devices_are() -> None:
    world = World()
    world.add("a", 2, Resources(cpu_milli=1000, memory_bytes=GIB))
    world.add("b", 9, Resources(cpu_milli=1000, memory_bytes=2 * GIB))
    assert world.place(wanting(2, memory_bytes=2 * GIB)) == "b"


def test_a_pod_that_needs_no_cpu_fits_on_a_node_that_has_less_than_none() -> None:
    world = World(a=1)
    world.decider.resize_node(NodeName("a"), Resources(cpu_milli=-500, memory_bytes=-1))
    assert world.place(wanting(1)) == "a"


def test_nodes_that_the_caller_bars_are_left_out_and_named() -> None:
    world = World(a=2, b=3)
    barred = [FilteredNodes(SAID.of("node(s) had untolerated taint"), np.array([True]))]
    decision = world.decider.decide(wanting(2), barred)
    assert decision is not None
    assert decision.node == "b"
    why = str(world.decider.explain(wanting(4), barred))
    assert why == f"0/2 nodes: 1 node(s) had untolerated taint, 1 {TOO_FEW}"


def test_barring_one_pods_nodes_bars_no_other_pod() -> None:
    world = World(a=2)
    assert world.decider.decide(wanting(1), [FilteredNodes(SAID.of("no"), np.array([True]))]) is None
    assert node_of(world.decider, wanting(1)) == "a"


def test_why_nothing_fits_is_counted_over_nodes_most_frequent_first() -> None:
    world = World(a=1, b=1, c=1)
    world.add("d", 9, Resources(cpu_milli=1, memory_bytes=GIB))
    world.add("e", 9, Resources(cpu_milli=9000, memory_bytes=1))
    why = world.decider.explain(wanting(2, cpu_milli=2, memory_bytes=2))
    assert str(why) == f"0/5 nodes: 3 {TOO_FEW}, 1 Insufficient cpu, 1 Insufficient memory"


def test_a_cluster_without_nodes_says_so() -> None:
    world = World()
    assert world.place(wanting(1)) is None
    assert str(world.decider.explain(wanting(1))) == "there is no node"


class Reluctant(Piles):
    """Reports that everything fits, and refuses to allocate on the slots in `refusing`."""

    refusing: Mapping[int, str] = {}

    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[Thing]]:
        if slot in self.refusing:
            raise Refused(self.refusing[slot])
        return super().partage_allocate(request, slot)


def test_where_an_owner_refuses_after_all_the_next_best_node_is_tried() -> None:
    world = World(Reluctant, a=2, b=3)
    world.plugin.refusing = {0: "its links are in use"}
    assert world.place(wanting(2)) == "b"
    assert str(world.decider.explain(wanting(3))) == f"0/2 nodes: 2 {TOO_FEW}"
    assert str(world.decider.explain(wanting(2))) == f"0/2 nodes: 1 its links are in use, 1 {TOO_FEW}"


def test_a_node_that_was_refused_is_tried_again_when_it_changes() -> None:
    world = World(Reluctant, a=2)
    world.plugin.refusing = {0: "not now"}
    assert world.place(wanting(1)) is None
    world.plugin.refusing = {}
    assert world.place(wanting(1)) is None
    world.decider.resize_node(NodeName("a"), Resources(cpu_milli=1, memory_bytes=1))
    assert world.place(wanting(1)) == "a"


def test_an_owner_that_refuses_everywhere_ends_in_its_own_words() -> None:
    world = World(Reluctant, **{f"n{number:02}": 2 for number in range(20)})
    world.plugin.refusing = dict.fromkeys(range(20), "nowhere, ever")
    with pytest.raises(Refused, match="nowhere, ever"):
        world.place(wanting(1))


class Raising(Piles):
    """Fails to score while `broken` is set."""

    broken = False

    @hookimpl
    def partage_scores(self, request: PodRequest, slots: Slots) -> Scores:
        if self.broken:
            raise OSError("a slip")
        return super().partage_scores(request, slots)


def test_a_plugin_that_fails_costs_that_pod_and_leaves_nothing_half_remembered() -> None:
    world = World(Raising, a=3, b=2)
    world.plugin.broken = True
    with pytest.raises(PluginFailed, match="a slip"):
        world.place(wanting(1))
    world.plugin.broken = False
    assert world.place(wanting(1)) == "b"
