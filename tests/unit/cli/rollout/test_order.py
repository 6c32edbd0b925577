"""Actions on a node and the order of nodes; a model checks that both hold whichever installer dies at any point."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_cli.rollout.node_state import DesiredState, InstallReport, Member, State, telling
from partage_cli.rollout.order import Command, Hold, HostState, hold, stoppage, wanted
from support.extent import examples

V1: Final = "0.1.0-g000000000001"
V2: Final = "0.1.0-g000000000002"
BARE = HostState()
IN_FORCE = HostState(version=V1, in_force=True)
OLDER = HostState(version=V2, in_force=True)
HALF = HostState(version=V1, why="kubelet speaks to containerd")


def member(  # noqa: PLR0913  what a node may have said, by name
    name: str,
    state: State | None = None,
    *,
    version: str = V1,
    canary: bool = False,
    wish: DesiredState = DesiredState.ON,
    label: DesiredState | None = None,
) -> Member:
    """`label`: the version requested when it reported, if another one."""
    told = None if state is None else telling(version, label or wish, state, f"why {name}")
    return Member(name=name, wish=wish, is_canary=canary, told=told)


def fleet(count: int, **states: State) -> list[Member]:
    return [member(name, states.get(name, "waiting")) for name in (f"n{number:02}" for number in range(count))]


@pytest.mark.parametrize(
    ("host", "commands"),
    [(BARE, ("install", "switch-on")), (HALF, ("install", "switch-on")), (OLDER, ("upgrade", "switch-on"))],
    ids=["bare", "half way", "another version"],
)
@pytest.mark.parametrize("said", [None, "waiting", "working"])
def test_what_is_missing_is_done(host: HostState, commands: tuple[Command, ...], said: State | None) -> None:
    assert wanted(member("n1", said), V1, host) == commands


@pytest.mark.parametrize("said", [None, "waiting", "working", "failed", "in-force"])
def test_a_host_that_is_in_force_says_so_whatever_was_said(said: State | None) -> None:
    assert wanted(member("n1", said), V1, IN_FORCE) == telling(V1, DesiredState.ON, "in-force")


def test_what_failed_is_not_tried_again_at_this_version_and_under_this_label() -> None:
    for wish in DesiredState:
        failed = member("n1", "failed", wish=wish)
        assert wanted(failed, V1, HALF) == failed.told
    assert wanted(member("n1", "failed", version=V2), V1, BARE) == ("install", "switch-on")
    assert wanted(member("n1", "failed", label=DesiredState.OFF), V1, BARE) == ("install", "switch-on")
    assert wanted(member("n1", "failed", wish=DesiredState.OFF, label=DesiredState.ON), V1, HALF) == ("uninstall",)


def test_a_host_that_fell_out_of_force_has_failed_and_is_left_as_it_is() -> None:
    told = wanted(member("n1", "in-force"), V1, HALF)
    assert told == telling(
        V1, DesiredState.ON, "failed", "it was in force and is no more: kubelet speaks to containerd"
    )


@pytest.mark.parametrize("host", [IN_FORCE, OLDER, HALF, BARE], ids=["in force", "other", "half way", "bare"])
def test_off_takes_out_what_is_there(host: HostState) -> None:
    off = member("n1", "in-force", wish=DesiredState.OFF, label=DesiredState.ON)
    assert wanted(off, V1, host) == (telling(V1, DesiredState.OFF, "off") if host == BARE else ("uninstall",))


def test_one_works_at_a_time_and_goes_on_with_what_it_has_begun() -> None:
    members = fleet(3, n01="working")
    assert hold("n02", V1, members, "n01") == Hold("n01 is at work, and one may be at a time", on=None)
    assert hold("n01", V1, members, "n01") is None
    assert hold("n02", V1, fleet(3), "") is None


def test_the_first_labelled_node_comes_first_though_others_are_in_force_already() -> None:
    canaries = [member("y", "waiting", canary=True), member("z", "waiting", canary=True)]
    members = [*fleet(2, n00="in-force"), *canaries]
    for each in ("n01", "z"):
        assert hold(each, V1, members, "") == Hold("the canary y comes first", on="y")
    assert hold("y", V1, members, "") is None
    assert hold("n01", V1, [*fleet(2), member("y", "in-force", canary=True), canaries[1]], "") is None
    assert hold("n01", V1, [*fleet(2), member("y", "off", canary=True, wish=DesiredState.OFF)], "") is None


def test_after_a_failure_nobody_begins() -> None:
    assert hold("n05", V1, fleet(9, n07="failed"), "") == Hold("stopped: n07 failed: why n07", on="n07")


def test_one_that_is_at_work_and_does_not_hold_the_lease_stops_the_others_and_goes_on_itself() -> None:
    members = fleet(9, n07="working")
    found = hold("n05", V1, members, "n08")
    assert found is not None
    assert (found.on, "went silent while it worked" in found.why) == ("n07", True)
    assert hold("n07", V1, members, "") is None


def test_what_failed_at_another_version_or_to_be_switched_off_stops_nobody() -> None:
    members = [
        member("n01", "failed", version=V2),
        member("n02", "waiting"),
        member("off", "failed", wish=DesiredState.OFF),
    ]
    assert hold("n02", V1, members, "") is None
    assert stoppage(V1, members, "") is None


# The model: every installer runs these steps, interleaved in any order, and may die before each.

STEPS: Final = ("nodes", "lease", "take", "nodes again", "lease again", "say working", "work", "say", "give back")


@dataclass
class ModelNode:
    """A node: the state that outlives its installer, and the installer's progress."""

    member: Member
    is_broken: bool = False
    """The new version does not come into force on it."""
    state: HostState = field(default_factory=HostState)
    touched: int = 0
    step: str = "start"
    is_alive: bool = True
    seen: list[Member] = field(default_factory=list[Member])
    outcome: State = "in-force"


class World:
    def __init__(self, count: int, broken: set[int]) -> None:
        self.nodes = [ModelNode(member(f"n{number:02}"), number in broken) for number in range(count)]
        self.holder = ""
        """The holder of the Lease, alive or not."""
        self.is_silent = False
        """Whether the holder is known to be dead."""
        self.begun: list[str] = []
        self.begun_at_failure: int | None = None
        """How many nodes had begun when the first failure could be known."""

    @property
    def held(self) -> str:
        return "" if self.is_silent else self.holder

    def members(self) -> list[Member]:
        return [node.member for node in self.nodes]

    def kill(self, node: ModelNode) -> None:
        node.is_alive = False

    def live(self, node: ModelNode) -> None:
        if not node.is_alive:
            node.is_alive, node.step = True, "start"

    def time_goes_by(self) -> None:
        """A dead holder's Lease expires."""
        alive = {node.member.name for node in self.nodes if node.is_alive}
        self.is_silent = self.is_silent or self.holder not in alive

    def take(self, holder: str) -> None:
        self.holder, self.is_silent = holder, False

    def say(self, node: ModelNode, told: InstallReport) -> None:
        node.member = Member(name=node.member.name, wish=node.member.wish, told=told)
        if told.state == "failed" and self.begun_at_failure is None:
            self.begun_at_failure = len(self.begun)

    def go(self, node: ModelNode) -> None:  # noqa: C901, PLR0912  one branch for each step
        if not node.is_alive:
            return
        name = node.member.name
        match node.step:
            case "start":
                next_ = wanted(node.member, V1, node.state)
                if not isinstance(next_, InstallReport):
                    if node.member.state(V1) is None:
                        self.say(node, telling(V1, DesiredState.ON, "waiting"))
                    node.step = "nodes"
                    return
                if self.holder == name:
                    self.take("")
                if next_ != node.member.told:
                    self.say(node, next_)
            case "nodes" | "nodes again":
                node.seen = self.members()
                node.step = "lease" if node.step == "nodes" else "lease again"
            case "lease" | "lease again":
                is_first = node.step == "lease"
                if hold(name, V1, node.seen, self.held) is None:
                    node.step = "take" if is_first else "say working"
                    return
                if not is_first and self.held == name:
                    self.take("")
                node.step = "start"
            case "take":
                is_free = self.held in ("", name)
                if is_free:
                    self.take(name)
                node.step = "nodes again" if is_free else "start"
            case "say working":
                self.say(node, telling(V1, DesiredState.ON, "working"))
                node.step = "work"
            case "work":
                node.touched += 1
                self.begun += [name] if node.touched == 1 else []
                node.outcome = "failed" if node.is_broken else "in-force"
                node.state = HostState(version=V1, in_force=not node.is_broken)
                node.step = "say"
            case "say":
                self.say(node, telling(V1, DesiredState.ON, node.outcome))
                node.step = "give back"
            case _:
                if self.holder == name:
                    self.take("")
                node.step = "start"

    def check(self) -> None:
        """Invariants that hold at all times."""
        at_work = [node.member.name for node in self.nodes if node.member.state(V1) == "working"]
        assert len(at_work) <= 1, at_work
        assert self.begun_at_failure in (None, len(self.begun)), "others began after a failure was told"

    def settled(self, random: Random) -> None:
        """All installers live and continue until nothing changes."""
        for node in self.nodes:
            self.live(node)
        before: object = None
        while before != (now := [(node.member.told, node.touched) for node in self.nodes]):
            before = now
            for node in random.sample(self.nodes, len(self.nodes)):
                for _ in range(2 * len(STEPS)):
                    self.go(node)
                    self.check()


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from([1, 2, 7]), kills=st.floats(0, 0.3))
def test_whoever_dies_wherever_all_come_into_force_one_at_a_time(seed: int, count: int, kills: float) -> None:
    random, world = Random(seed), World(count, set())  # noqa: S311
    roam(world, random, kills)
    world.settled(random)
    assert [node.member.state(V1) for node in world.nodes] == ["in-force"] * count
    assert world.holder == ""


@settings(max_examples=examples(25), deadline=None)
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
    world.say(world.nodes[broken], telling(V2, DesiredState.ON, "waiting"))
    world.nodes[broken].is_broken, world.begun_at_failure = False, None
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
