"""What is to be done with one node: the host's facts first, then what was said before."""

from __future__ import annotations

import pytest

from partage_cli.rollout.errand import Command, Errand, HostState, wanted
from partage_cli.rollout.told import Member, State, Wish, telling

V1, V2 = "0.1.0-g000000000001", "0.1.0-g000000000002"
BARE = HostState()
IN_FORCE = HostState(version=V2, in_force=True)
OLDER = HostState(version=V1, in_force=True)
HALF = HostState(version=V2, why="kubelet speaks to containerd")


def node(state: State | None = None, *, version: str = V2, wish: Wish = Wish.ON, label: Wish | None = None) -> Member:
    told = None if state is None else telling(version, label or wish, state, "as before")
    return Member(name="n1", wish=wish, told=told)


@pytest.mark.parametrize(
    ("host", "commands"),
    [(BARE, ("install", "switch-on")), (HALF, ("install", "switch-on")), (OLDER, ("upgrade", "switch-on"))],
    ids=["bare", "half way", "an older version"],
)
@pytest.mark.parametrize("said", [None, "waiting", "working"])
def test_what_is_missing_is_done(host: HostState, commands: tuple[Command, ...], said: State | None) -> None:
    assert wanted(node(said), V2, host) == Errand(commands)


@pytest.mark.parametrize("said", [None, "waiting", "working", "failed", "in-force"])
def test_a_host_that_is_in_force_says_so_whatever_was_said(said: State | None) -> None:
    assert wanted(node(said), V2, IN_FORCE) == telling(V2, Wish.ON, "in-force")


def test_what_failed_is_not_tried_again_at_this_version() -> None:
    failed = node("failed")
    assert wanted(failed, V2, BARE) == failed.told
    assert wanted(node("failed", version=V1), V2, BARE) == Errand(("install", "switch-on"))
    assert wanted(node(), V2, BARE) == Errand(("install", "switch-on"))


def test_a_host_that_fell_out_of_force_has_failed_and_is_left_as_it_is() -> None:
    told = wanted(node("in-force"), V2, HALF)
    assert told == telling(V2, Wish.ON, "failed", "it was in force and is no more: kubelet speaks to containerd")


@pytest.mark.parametrize("host", [IN_FORCE, OLDER, HALF], ids=["in force", "older", "half way"])
def test_off_takes_out_what_is_there(host: HostState) -> None:
    assert wanted(node("in-force", wish=Wish.OFF, label=Wish.ON), V2, host) == Errand(("uninstall",))


def test_off_is_told_where_nothing_is_installed() -> None:
    assert wanted(node(wish=Wish.OFF), V2, BARE) == telling(V2, Wish.OFF, "off")


def test_a_failure_under_another_label_does_not_count() -> None:
    assert wanted(node("failed", wish=Wish.OFF, label=Wish.ON), V2, HALF) == Errand(("uninstall",))
    assert isinstance(wanted(node("failed", label=Wish.OFF), V2, HALF), Errand)
    failed = node("failed", wish=Wish.OFF)
    assert wanted(failed, V2, HALF) == failed.told
