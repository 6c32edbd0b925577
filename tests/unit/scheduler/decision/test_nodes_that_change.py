"""Nodes are added, change and go, and plugins fail in between; what pods hold stays correct."""

from __future__ import annotations

import pytest

from partage_plugins import hookimpl
from partage_plugins.api import Allocation, NodeName, PodUid, Resources, Slot
from partage_plugins.errors import PluginBroken
from unit.scheduler.piles import GIB, ROOM, Piles, World, pile, wanting

A = NodeName("a")


def test_a_node_that_is_gone_is_not_chosen_and_frees_what_was_held() -> None:
    world = World(a=2, b=5)
    world.place(wanting(1, pod="p1"))
    world.decider.remove_node(A)
    assert world.decider.ledger.holding(PodUid("p1")) is None
    assert world.place(wanting(1, pod="p2")) == "b"


def test_slots_are_used_again_so_arrays_stay_short() -> None:
    world = World(a=1)
    for number in range(50):
        world.add(f"n{number}", 1)
        world.decider.remove_node(NodeName(f"n{number}"))
    assert world.decider.slots.end == 2


def test_a_slot_that_is_used_again_says_nothing_of_the_node_before() -> None:
    world = World(a=5, b=1)
    assert world.place(wanting(5, pod="p1")) == "a"
    world.decider.remove_node(A)
    world.add("c", 3)
    assert world.place(wanting(3, pod="p2")) == "c"


def test_a_new_inventory_keeps_what_is_held() -> None:
    world = World(a=3)
    world.place(wanting(2, cpu_milli=1000, pod="p1"))
    world.decider.replace_inventory(A, pile(4))
    assert world.place(wanting(3, pod="p2")) is None
    assert world.place(wanting(2, pod="p3")) == "a"
    assert world.decider.free(A) == Resources(cpu_milli=7000, memory_bytes=8 * GIB)


def test_a_node_that_grows_has_room_and_one_that_shrinks_has_none() -> None:
    world = World(a=9)
    world.place(wanting(1, cpu_milli=8000, pod="p1"))
    assert world.place(wanting(1, cpu_milli=1, pod="p2")) is None
    world.decider.resize_node(A, Resources(cpu_milli=9000, memory_bytes=GIB))
    assert world.place(wanting(1, cpu_milli=1000, pod="p3")) == "a"
    world.decider.resize_node(A, Resources(cpu_milli=1000, memory_bytes=GIB))
    assert world.decider.free(A).cpu_milli == -8000


def test_the_same_node_twice_and_a_pod_twice_are_defects_of_the_caller() -> None:
    world = World(a=2)
    with pytest.raises(ValueError, match="node a has slot 0 already"):
        world.add("a", 1)
    world.place(wanting(1))
    with pytest.raises(ValueError, match="pod p holds an allocation already"):
        world.place(wanting(1))


def test_a_node_that_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match="node b is not known; add it first"):
        World(a=1).decider.remove_node(NodeName("b"))


class Slipping(Piles):
    """Raises at its third take: the first instance only, or each if `always`."""

    lives = 0
    always = False

    def __init__(self) -> None:
        super().__init__()
        Slipping.lives += 1
        self.takes = 0

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        self.takes += 1
        if self.takes == 3 and (Slipping.lives == 1 or self.always):
            self.free.clear()
            raise KeyError("lost count")
        super().partage_take(slot, allocation)


@pytest.fixture
def slipping(monkeypatch: pytest.MonkeyPatch) -> type[Slipping]:
    monkeypatch.setattr(Slipping, "lives", 0)
    return Slipping


def test_a_plugin_that_lost_count_is_told_everything_again(slipping: type[Slipping]) -> None:
    world = World(slipping, a=4, b=4)
    nodes = [world.place(wanting(1, cpu_milli=100, pod=f"p{number}")) for number in range(4)]
    assert nodes == ["a"] * 4
    assert len(world.renewals) == 1
    assert world.plugin.free == {0: [], 1: ["t0", "t1", "t2", "t3"]}
    assert world.plugin.cpu_milli == {0: 7600, 1: 8000}


def test_a_plugin_that_loses_count_while_an_inventory_is_replaced_counts_nothing_twice(
    slipping: type[Slipping],
) -> None:
    world = World(slipping, a=4)
    for number in range(2):
        world.place(wanting(1, pod=f"p{number}"))
    world.decider.replace_inventory(A, pile(5))
    assert len(world.renewals) == 1
    assert world.plugin.free == {0: ["t2", "t3", "t4"]}


def test_one_that_fails_again_must_not_go_on(slipping: type[Slipping], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slipping, "always", True)
    world = World(slipping, a=4)
    for number in range(2):
        world.place(wanting(1, pod=f"p{number}"))
    with pytest.raises(PluginBroken, match="lost count"):
        world.place(wanting(1, pod="p2"))


def test_after_a_plugin_was_made_anew_nothing_that_it_said_is_remembered(slipping: type[Slipping]) -> None:
    world = World(slipping, a=4, b=4, c=4)
    for number in range(3):
        world.place(wanting(1, pod=f"p{number}"))
    world.plugin.asked.clear()
    world.decider.decide(wanting(1))
    assert world.plugin.asked == [(0, 1, 2)]
    assert world.decider.free(A) == ROOM
