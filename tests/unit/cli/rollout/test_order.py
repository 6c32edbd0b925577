"""Whose turn it is, and that it stays so whoever dies wherever: a model of the protocol over the pure decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_cli.rollout.errand import Errand, HostState, wanted
from partage_cli.rollout.order import Hold, Take, canary, stoppage, turn, width
from partage_cli.rollout.told import Member, State, Told, Wish, telling

V1: Final = "0.1.0-g000000000001"
V2: Final = "0.1.0-g000000000002"
PERCENT: Final = 5


def member(
    name: str, state: State | None = None, *, version: str = V1, canary: bool = False, off: bool = False
) -> Member:
    wish = Wish.OFF if off else Wish.ON
    told = None if state is None else telling(version, wish, state, f"why {name}")
    return Member(name=name, wish=wish, is_canary=canary, told=told)


def fleet(count: int, **states: State) -> list[Member]:
    return [member(name, states.get(name, "waiting")) for name in (f"n{number:02}" for number in range(count))]


def decided(me: str, members: list[Member], held: Mapping[int, str] | None = None) -> Take | Hold:
    return turn(me, V1, members, held or {}, percent=PERCENT)


def test_the_first_by_name_is_the_canary_and_the_others_wait_for_it() -> None:
    assert decided("n00", fleet(20)) == Take(0)
    assert decided("n07", fleet(20)) == Hold("the canary n00 comes first", on="n00")


def test_a_node_whose_installer_never_spoke_is_no_canary() -> None:
    members = [member("n00"), *fleet(20)[1:]]
    assert decided("n01", members) == Take(0)


def test_a_labelled_node_is_the_canary_wherever_its_name_stands() -> None:
    members = [*fleet(20), member("zz", "waiting", canary=True)]
    assert decided("n00", members) == Hold("the canary zz comes first", on="zz")
    assert decided("zz", members) == Take(0)


def test_a_labelled_canary_counts_though_others_are_in_force_already() -> None:
    members = [*fleet(20, n00="in-force"), member("zz", "waiting", canary=True)]
    assert isinstance(decided("n01", members), Hold)
    assert isinstance(decided("n01", [*members[:-1], member("zz", "in-force", canary=True)]), Take)


@pytest.mark.parametrize(("count", "most"), [(1, 1), (20, 1), (21, 2), (40, 2), (200, 10), (5000, 250)])
def test_five_percent_work_at_a_time_and_at_least_one(count: int, most: int) -> None:
    assert width(count, PERCENT) == most


def test_a_node_takes_a_slot_that_is_free_and_looks_at_one_where_none_is() -> None:
    members = fleet(60, n00="in-force", n01="working", n02="working")
    assert decided("n05", members, {0: "n01", 2: "n02"}) == Take(1)
    members[3] = member("n03", "working")
    hold = decided("n05", members, {0: "n01", 2: "n02", 1: "n03"})
    assert isinstance(hold, Hold)
    assert hold.on in {0, 1, 2}
    assert hold.why == "3 at work, and 3 may be at a time"


def test_one_that_holds_a_slot_goes_on_with_it() -> None:
    assert decided("n05", fleet(60, n00="in-force", n05="working"), {2: "n05"}) == Take(2)


def test_after_a_failure_nobody_begins() -> None:
    members = fleet(60, n00="in-force", n07="failed")
    assert decided("n05", members) == Hold("stopped: n07 failed: why n07", on="n07")


def test_one_that_is_at_work_and_holds_no_slot_stops_the_others_and_goes_on_itself() -> None:
    members = fleet(60, n00="in-force", n07="working")
    hold = decided("n05", members)
    assert isinstance(hold, Hold)
    assert hold.on == "n07"
    assert "went silent while it worked" in hold.why
    assert decided("n07", members) == Take(0)


def test_what_failed_at_another_version_stops_nobody() -> None:
    members = [member("n00", "in-force"), member("n01", "failed", version=V2), member("n02", "waiting")]
    assert decided("n02", members) == Take(0)


def test_switching_off_waits_for_a_slot_and_for_no_canary_or_failure() -> None:
    members = [*fleet(19, n07="failed"), member("off", "waiting", off=True)]
    assert decided("off", members) == Take(0)
    assert isinstance(decided("off", members, {0: "n00"}), Hold)


def test_one_that_failed_to_be_switched_off_stops_nobody() -> None:
    members = [member("off", "failed", off=True), member("n00", "waiting")]
    assert decided("n00", members) == Take(0)
    assert stoppage(V1, members, {}) is None


# The model: every installer goes through these steps, one at a time and in any order, and may die before each.

STEPS: Final = ("nodes", "slots", "take", "nodes again", "slots again", "say working", "work", "say", "give back")


@dataclass
class ModelNode:
    """A node: what outlives its installer, and how far that one is."""

    member: Member
    is_broken: bool = False
    """The new version does not come into force on it."""
    state: HostState = field(default_factory=HostState)
    touched: int = 0
    step: str = "start"
    is_alive: bool = True
    seen: list[Member] = field(default_factory=list[Member])
    slot: int = -1
    outcome: State = "in-force"


class World:
    def __init__(self, count: int, broken: set[int]) -> None:
        self.nodes = [ModelNode(member(f"n{number:02}"), number in broken) for number in range(count)]
        self.slots: dict[int, str] = {}
        """Alive or not."""
        self.lost: set[int] = set()
        """Slots whose holders are known to be silent."""
        self.begun: list[str] = []
        self.failed_told_at: int | None = None
        """How many nodes had begun when the first failure could be known."""

    @property
    def held(self) -> dict[int, str]:
        return {slot: holder for slot, holder in self.slots.items() if slot not in self.lost}

    def members(self) -> list[Member]:
        return [node.member for node in self.nodes]

    def kill(self, node: ModelNode) -> None:
        node.is_alive = False

    def live(self, node: ModelNode) -> None:
        if not node.is_alive:
            node.is_alive, node.step = True, "start"

    def time_goes_by(self) -> None:
        """The slots of those that are dead run out."""
        dead = {node.member.name for node in self.nodes if not node.is_alive}
        self.lost |= {slot for slot, holder in self.slots.items() if holder in dead}

    def say(self, node: ModelNode, told: Told) -> None:
        node.member = Member(name=node.member.name, wish=node.member.wish, told=told)
        if told.state == "failed" and self.failed_told_at is None:
            self.failed_told_at = len(self.begun)

    def go(self, node: ModelNode) -> None:  # noqa: C901, PLR0912  one branch for each step
        if not node.is_alive:
            return
        name = node.member.name
        match node.step:
            case "start":
                next_ = wanted(node.member, V1, node.state)
                if isinstance(next_, Errand):
                    if node.member.state(V1) is None:
                        self.say(node, telling(V1, Wish.ON, "waiting"))
                    node.step = "nodes"
                    return
                for slot in [slot for slot, holder in self.slots.items() if holder == name]:
                    del self.slots[slot]
                if next_ != node.member.told:
                    self.say(node, next_)
            case "nodes" | "nodes again":
                node.seen = self.members()
                node.step = "slots" if node.step == "nodes" else "slots again"
            case "slots" | "slots again":
                is_first = node.step == "slots"
                decision = turn(name, V1, node.seen, self.held, percent=PERCENT)
                if isinstance(decision, Take):
                    node.slot = decision.slot if is_first else node.slot
                    node.step = "take" if is_first else "say working"
                else:
                    if not is_first and self.held.get(node.slot) == name:
                        del self.slots[node.slot]
                    node.step = "start"
            case "take":
                is_free = self.held.get(node.slot, name) == name
                if is_free:
                    self.slots[node.slot] = name
                    self.lost.discard(node.slot)
                node.step = "nodes again" if is_free else "start"
            case "say working":
                self.say(node, telling(V1, Wish.ON, "working"))
                node.step = "work"
            case "work":
                node.touched += 1
                self.begun += [name] if node.touched == 1 else []
                node.outcome = "failed" if node.is_broken else "in-force"
                node.state = HostState(version=V1, in_force=not node.is_broken)
                node.step = "say"
            case "say":
                self.say(node, telling(V1, Wish.ON, node.outcome))
                node.step = "give back"
            case _:
                if self.slots.get(node.slot) == name:
                    del self.slots[node.slot]
                    self.lost.discard(node.slot)
                node.step = "start"

    def check(self) -> None:
        """What must be so at every moment."""
        most = width(len(self.nodes), PERCENT)
        is_proven = any(node.member.state(V1) == "in-force" for node in self.nodes)
        at_work = [node.member.name for node in self.nodes if node.member.state(V1) == "working"]
        assert len(at_work) <= (most if is_proven else 1), at_work
        if self.failed_told_at is not None:
            assert len(self.begun) < self.failed_told_at + most, "others began after a failure was told"

    def settled(self, random: Random) -> None:
        """All live and go on, until nothing changes any more."""
        for node in self.nodes:
            self.live(node)
        before: object = None
        while before != (now := [(node.member.told, node.touched) for node in self.nodes]):
            before = now
            for node in random.sample(self.nodes, len(self.nodes)):
                for _ in range(2 * len(STEPS)):
                    self.go(node)
                    self.check()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from([1, 2, 7, 41]), kills=st.floats(0, 0.3))
def test_whoever_dies_wherever_all_come_into_force_a_few_at_a_time(seed: int, count: int, kills: float) -> None:
    random, world = Random(seed), World(count, set())  # noqa: S311
    roam(world, random, kills)
    world.settled(random)
    assert [node.member.state(V1) for node in world.nodes] == ["in-force"] * count
    assert world.slots == {}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), broken=st.integers(0, 19), kills=st.floats(0, 0.3))
def test_whoever_dies_wherever_one_failure_stops_it_with_no_more_node_touched(
    seed: int, broken: int, kills: float
) -> None:
    random, world = Random(seed), World(20, {broken})  # noqa: S311
    roam(world, random, kills)
    world.settled(random)
    name = f"n{broken:02}"
    last = world.begun[-1:] == [name]
    others = [node.member.state(V1) for node in world.nodes if node.member.name != name]
    if name in world.begun:
        assert last, "a node was touched after the one that failed"
        assert world.nodes[broken].member.state(V1) == "failed"
        assert set(others) <= {"in-force", "waiting"}
    world.say(world.nodes[broken], telling(V2, Wish.ON, "waiting"))
    world.nodes[broken].is_broken, world.failed_told_at = False, None
    world.settled(random)
    assert {node.member.state(V1) for node in world.nodes} == {"in-force"}


def roam(world: World, random: Random, kills: float) -> None:
    for _ in range(15 * len(world.nodes)):
        node = random.choice(world.nodes)
        if random.random() < kills:
            at_work = [each for each in world.nodes if each.step in ("work", "say")]
            world.kill(random.choice(at_work or world.nodes))
        elif random.random() < kills:
            world.live(node)
        if random.random() < kills:
            world.time_goes_by()
        world.go(node)
        world.check()


def test_a_node_that_vanishes_with_its_slot_keeps_nobody() -> None:
    world = World(20, set())
    first = world.nodes[0]
    while first.step != "work":
        world.go(first)
    world.kill(first)
    world.nodes.remove(first)
    world.lost.add(0)
    world.settled(Random(1))  # noqa: S311
    assert {node.member.state(V1) for node in world.nodes} == {"in-force"}


def test_the_canary_is_the_only_one_touched_where_it_fails() -> None:
    world = World(20, set(range(20)))
    world.settled(Random(2))  # noqa: S311
    assert len(world.begun) == 1
    assert world.begun[0] == canary(
        V1, [each for each in world.members() if each.state(V1) == "failed"], world.begun[0]
    )
