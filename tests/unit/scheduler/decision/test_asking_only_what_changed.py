"""Cached results equal a full recomputation after any history, and few slots are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from partage_plugins import hookimpl
from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.api import NodeName, PodRequest, PodUid, Resources
from partage_plugins.errors import PluginFailed
from partage_scheduler.decision import Decider, Ledger
from unit.scheduler.piles import GIB, ROOM, Piles, Shapeless, World, liking, node_of, pile, wanting

NAMES = [NodeName(name) for name in ("a", "b", "c", "d", "e")]
COUNTS, CPUS = (0, 1, 2, 3), (0, 1000, 3000)
names, sizes = st.sampled_from(NAMES), st.integers(0, 6)
rooms = st.builds(Resources, cpu_milli=st.sampled_from([0, 2000, 5000]), memory_bytes=st.sampled_from([0, GIB]))


def test_a_second_pod_of_a_shape_asks_only_for_the_node_that_changed() -> None:
    world = World(a=4, b=9, c=9)
    for number in range(3):
        world.place(wanting(1, pod=f"p{number}"))
    assert world.plugin.asked == [(0, 1, 2), (0,), (0,)]


def test_a_pod_of_a_shape_for_which_nothing_changed_asks_nothing() -> None:
    world = World(a=4, b=9)
    for _ in range(5):
        world.decider.decide(wanting(1))
    assert len(world.plugin.asked) == 1


def test_pods_that_differ_in_cpu_and_memory_alone_ask_once() -> None:
    world = World(a=4)
    world.add("b", 4, Resources(cpu_milli=1, memory_bytes=GIB))
    for number in range(5):
        world.decider.decide(wanting(1, cpu_milli=number, memory_bytes=number))
    assert world.plugin.asked == [(0, 1)]


def test_where_only_some_nodes_matter_no_others_are_asked_for_before_they_do() -> None:
    world = World(a=4, b=9, c=9)
    decider, request = world.decider, wanting(1)
    a, b, c = decider.slots.of_all(NAMES[:3])
    for among in ([c], [a, c], [a]):
        assert np.isfinite(decider.liked(request, np.array(among))[among]).all()
    assert world.plugin.asked == [(c,), (a,)]
    assert world.place(wanting(1, pod="p")) == "a"
    assert world.plugin.asked == [(c,), (a,), (b,)]


def test_what_failed_to_be_asked_is_asked_again() -> None:
    world = World(Failing, a=4, b=9)
    for _ in range(2):
        with pytest.raises(PluginFailed):
            world.decider.decide(wanting(1))
    Failing.fails = False
    assert node_of(world.decider, wanting(1)) == "a"


def test_the_shape_that_nobody_asked_for_longest_is_forgotten_first() -> None:
    world = World()
    decider = Decider(world.framework, Ledger(), shapes=2)
    decider.add_node(NAMES[0], pile(9), ROOM)
    for count in (1, 2, 1, 3, 1):
        decider.decide(wanting(count))
    assert len(world.plugin.asked) == 3
    decider.decide(wanting(2))
    assert len(world.plugin.asked) == 4


def test_shapes_that_cpu_alone_tells_apart_are_kept_apart() -> None:
    world = World(a=4)
    assert node_of(world.decider, wanting(1, cpu_milli=9000)) is None
    assert node_of(world.decider, wanting(1, cpu_milli=8000)) == "a"


@pytest.mark.parametrize("plugin", [Piles, Shapeless])
def test_pods_of_one_shape_get_what_pods_asked_for_one_by_one_get(plugin: type[Shapeless]) -> None:
    world = World(plugin, a=3, b=2)
    assert [world.place(wanting(1, pod=f"p{number}")) for number in range(6)] == ["b", "b", "a", "a", "a", None]


class Failing(Piles):
    """Raises until `fails` is cleared."""

    fails = True

    @hookimpl
    def partage_scores(self, request: PodRequest, slots: Slots) -> Scores:
        if Failing.fails:
            raise ValueError("not now")
        return super().partage_scores(request, slots)


class Anything(RuleBasedStateMachine):
    """Nodes and pods come and go in any order; a model of plain dictionaries gives the expected result."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.decider = self.world.decider
        self.nodes: dict[NodeName, tuple[int, Resources]] = {}
        self.pods: dict[PodUid, tuple[NodeName, int, Resources]] = {}
        self.number = 0

    def free(self, node: NodeName) -> tuple[int, int, int]:
        size, total = self.nodes[node]
        held = [(count, needs) for name, count, needs in self.pods.values() if name == node]
        return (
            size - sum(count for count, _ in held),
            total.cpu_milli - sum(needs.cpu_milli for _, needs in held),
            total.memory_bytes - sum(needs.memory_bytes for _, needs in held),
        )

    def right(self, count: int, needs: Resources) -> dict[NodeName, int]:
        """The score of each node on which the request fits."""
        scores: dict[NodeName, int] = {}
        for node in self.nodes:
            things, cpu_milli, memory_bytes = self.free(node)
            has_cpu = not needs.cpu_milli or cpu_milli >= needs.cpu_milli
            has_memory = not needs.memory_bytes or memory_bytes >= needs.memory_bytes
            if has_cpu and has_memory and things >= count:
                scores[node] = liking(things, cpu_milli, count)
        return scores

    @rule(node=names, size=sizes, room=rooms)
    def a_node_comes(self, node: NodeName, size: int, room: Resources) -> None:
        if node not in self.nodes:
            self.decider.add_node(node, pile(size), room)
            self.nodes[node] = size, room

    @rule(node=names)
    def a_node_goes(self, node: NodeName) -> None:
        if node in self.nodes:
            self.decider.remove_node(node)
            del self.nodes[node]
            self.pods = {pod: held for pod, held in self.pods.items() if held[0] != node}

    @rule(node=names, more=st.integers(0, 3))
    def a_node_gets_more_things(self, node: NodeName, more: int) -> None:
        if node in self.nodes:
            size, room = self.nodes[node]
            self.decider.replace_inventory(node, pile(size + more))
            self.nodes[node] = size + more, room

    @rule(node=names, room=rooms)
    def a_node_is_resized(self, node: NodeName, room: Resources) -> None:
        if node in self.nodes:
            self.decider.resize_node(node, room)
            self.nodes[node] = self.nodes[node][0], room

    @rule(count=st.sampled_from(COUNTS), cpu_milli=st.sampled_from(CPUS), memory_bytes=st.sampled_from([0, GIB // 2]))
    def a_pod_comes(self, count: int, cpu_milli: int, memory_bytes: int) -> None:
        self.number += 1
        request = wanting(count, cpu_milli=cpu_milli, memory_bytes=memory_bytes, pod=f"p{self.number}")
        scores = self.right(count, request.needs)
        best = min(scores, key=lambda node: (-scores[node], node), default=None)
        assert self.world.place(request) == best
        if best is not None:
            self.pods[request.pod.uid] = best, count, request.needs
        else:
            assert self.decider.explain(request).fitting == 0

    @rule(place=st.integers(0, 99))
    def a_pod_goes(self, place: int) -> None:
        if self.pods:
            pod = sorted(self.pods)[place % len(self.pods)]
            assert self.decider.give_back(pod)
            del self.pods[pod]

    @rule(nodes=st.lists(names, unique=True), count=st.sampled_from(COUNTS))
    def some_nodes_are_asked_about(self, nodes: list[NodeName], count: int) -> None:
        slots = self.decider.slots.of_all(nodes)
        liked = self.decider.liked(wanting(count), slots[slots >= 0])
        right = self.right(count, Resources())
        for node, slot in zip(nodes, slots.tolist(), strict=True):
            assert slot < 0 or liked[slot] == right.get(node, -np.inf)

    @invariant()
    def every_shape_is_as_if_asked_anew(self) -> None:
        for count in COUNTS[self.number % 2 :]:  # not all each time, so that some are stale for long
            weighed = self.decider.weigh(wanting(count, cpu_milli=CPUS[1]))
            known = {node: self.decider.slots.of(node) for node in self.nodes}
            fitting = {node: int(weighed[slot]) for node, slot in known.items() if np.isfinite(weighed[slot])}
            assert fitting == self.right(count, Resources(cpu_milli=CPUS[1]))
            assert np.count_nonzero(np.isfinite(weighed)) == len(fitting)


TestAnything = pytest.mark.slow(Anything.TestCase)


@pytest.mark.slow
@given(order=st.permutations(NAMES), piles=st.lists(sizes, min_size=5, max_size=5), counts=st.lists(sizes, max_size=12))
def test_the_order_in_which_nodes_came_decides_nothing(
    order: list[NodeName], piles: list[int], counts: list[int]
) -> None:
    size = dict(zip(NAMES, piles, strict=True))
    placed: list[list[str | None]] = []
    for nodes in (NAMES, order):
        world = World(**{str(name): size[name] for name in nodes})
        placed.append([world.place(wanting(count, pod=f"p{number}")) for number, count in enumerate(counts)])
    assert placed[0] == placed[1]


class Counting(Piles):
    """Records the length of the longest array of slots that it gets."""

    longest = 0

    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        Counting.longest = max(Counting.longest, slots.size)
        return super().partage_fits(request, slots)


def test_thousands_of_nodes_are_asked_for_in_one_call() -> None:
    world = World(Counting, **{f"n{number}": 1 for number in range(300)})
    world.decider.decide(wanting(1))
    assert Counting.longest == 300
