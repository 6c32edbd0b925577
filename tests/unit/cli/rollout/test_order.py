"""What is done with a node, and whose turn it is."""

from __future__ import annotations

from typing import Final

import pytest

from partage_cli.rollout.node_state import DesiredState, Member, State, telling
from partage_cli.rollout.order import Command, Hold, HostState, hold, stoppage, wanted

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
