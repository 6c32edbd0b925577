"""Nodes that are added, change, stop their heartbeats and are deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partage_plugins.api import Inventory, Reads, Ready
from partage_plugins.api.kinds import whole_devices
from partage_scheduler.cluster.readiness import SILENT
from support.objects import READY, node, pod
from support.sides import THING
from unit.scheduler.cluster.stage import (
    BUDGETS_TOO,
    FREED,
    INVENTORY,
    NODE,
    NONE,
    POD,
    Stage,
    holding,
    piled,
    things,
)
from unit.scheduler.piles import node_of, pile, wanting


def test_pods_that_are_told_of_before_their_node_count_when_it_comes() -> None:
    stage = Stage()
    assert stage.pod(holding("a", "n", "t0", cpu="2")) == POD
    assert not stage.rules.pods
    assert stage.cluster.node(piled("n", 3)) == NODE
    assert stage.left("n") == (2, 6000, 8)
    assert len(stage.rules.pods) == 1


def test_a_node_that_was_registered_anew_under_its_name_is_another() -> None:
    stage = Stage(piled("n", 3, version=1))
    stage.pod(holding("a", "n", "t0"))
    assert stage.cluster.node(piled("n", 2, uid="new", version=5, cpu="4")) == NODE | FREED
    assert stage.left("n") == (1, 4000, 8)
    assert stage.cluster.node(piled("n", 9, version=3)) == NONE, "told late of the one before"
    assert stage.cluster.node_gone("n", uid="uid-n") == NONE
    assert stage.left("n") == (1, 4000, 8)


def test_an_inventory_that_shrinks_below_what_is_bound_leaves_nothing_and_forgets_nobody() -> None:
    """The plugin of these tests would count below zero; the allocator of cards avoids cards that it lost."""
    stage = Stage(piled("n", 4))
    stage.pod(holding("a", "n", "t0", "t1", "t2"))
    assert stage.cluster.node(piled("n", 3)) == INVENTORY
    assert stage.left("n")[0] == 0
    assert stage.cluster.node(piled("n", 5)) == INVENTORY
    assert stage.left("n")[0] == 2
    stage.cluster.pod_gone(holding("a", "n").uid)
    assert stage.left("n")[0] == 5


@pytest.mark.parametrize(
    ("after", "cluster_events"),
    [
        (piled("n", 3), NONE),
        (piled("n", 4), INVENTORY),
        (piled("n", 3, cpu="9"), NODE),
        (piled("n", 3, labels={"zone": "a"}), NODE),
        (piled("n", 3, unschedulable=True), NODE),
        (piled("n", 3, taints=[{"key": "k", "effect": "NoSchedule"}]), NODE),
    ],
)
def test_what_a_change_means(after: object, cluster_events: frozenset[object]) -> None:
    stage = Stage(piled("n", 3))
    assert stage.cluster.node(after) == cluster_events  # type: ignore[arg-type]
    assert next(iter(stage.rules.nodes.values())) == after


def test_a_node_that_shrinks_below_what_is_on_it_has_less_than_nothing() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(pod("a", node="n", cpu="6"))
    stage.cluster.node(piled("n", 3, cpu="4"))
    assert stage.left("n") == (3, -2000, 8)
    assert node_of(stage.world.decider, wanting(1)) == "n"
    assert node_of(stage.world.decider, wanting(1, cpu_milli=1)) is None


@pytest.mark.parametrize(
    ("inventory", "why"),
    [
        (None, "node(s) didn't say which devices they have"),
        ("{", "node(s) had an inventory that can't be read"),
        (things(3, Ready(crishim=False, broker=True)), "node(s) had no crishim in force"),
        (things(3, Ready(crishim=True, broker=False)), "node(s) had no broker in force"),
        (
            Inventory(kinds=pile(3).kinds, ready=READY, reads=Reads(allocation=(7,))),
            "node(s) read no version of allocations that this scheduler writes",
        ),
    ],
)
def test_a_node_that_can_not_share_takes_no_pod_with_devices_and_any_other(
    inventory: Inventory | str | None, why: str
) -> None:
    stage = Stage(piled("m", 3), node("n", inventory))
    assert stage.why_not() == {why: ["n"]}
    assert stage.why_not(devices=0) == {}
    assert str(stage.cluster.fleet.why_not(node("n").name, 0.0)) == why
    assert stage.cluster.node(piled("n", 3, labels={"now": "well"})) == INVENTORY | NODE
    assert stage.why_not() == {}


def test_where_devices_are_given_whole_a_node_needs_no_broker_but_all_else() -> None:
    stage = Stage(piled("n", 3), kind=replace(THING, promises=whole_devices))
    stage.cluster.node(piled("n", 3, ready=Ready(crishim=True, broker=False)))
    assert stage.why_not() == {}
    assert stage.why_not(now=1e6) == {SILENT.words: ["n"]}
    assert stage.cluster.heartbeat("n", 1e6, 1e6) == NODE
    stage.cluster.node(piled("n", 3, ready=Ready(crishim=False, broker=False)))
    assert stage.why_not() == {"node(s) had no crishim in force": ["n"]}


def test_a_pod_with_a_budget_goes_only_where_budgets_are_read() -> None:
    stage = Stage(piled("old", 3), piled("new", 3, reads=BUDGETS_TOO))
    refused = {"node(s) can't read budgets of several containers: upgrade partage there": ["old"]}
    assert stage.why_not(budget=True) == refused
    assert stage.why_not() == {}
    assert stage.cluster.node(piled("new", 3)) == NONE, "it was downgraded: no pod fits better than before"
    assert stage.why_not(budget=True) == {each: ["new", "old"] for each in refused}
    assert stage.cluster.node(piled("old", 3, reads=BUDGETS_TOO)) == INVENTORY
    assert stage.why_not(budget=True) == {each: ["new"] for each in refused}


def test_an_inventory_that_can_not_be_read_leaves_the_last_that_could() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(holding("a", "n", "t0"))
    stage.cluster.node(node("n", "{"))
    assert stage.left("n")[0] == 2
    assert stage.cluster.node(piled("n", 3)) == INVENTORY


def test_a_node_takes_part_while_it_is_heard_of() -> None:
    stage = Stage()
    stage.cluster.node(piled("n", 3))
    silent = {"node(s) had no heartbeat of the advertiser": ["n"]}
    assert stage.why_not(now=100.0) == silent
    assert stage.cluster.heartbeat("n", 99.0, 100.0) == NODE
    assert stage.why_not(now=139.0) == {}
    assert stage.why_not(now=139.1) == silent
    assert stage.cluster.heartbeat("n", 99.0, 140.0) == NONE, "the same beat again"
    assert stage.why_not(now=140.0) == silent
    assert stage.cluster.heartbeat("n", 141.0, 141.0) == NODE
    assert stage.cluster.heartbeat("n", 151.0, 151.0) == NONE
    assert stage.why_not(now=190.0) == {}
    stage.cluster.heartbeat("n", None, 190.0)
    assert stage.why_not(now=190.0) == silent


def test_a_node_whose_clock_is_wrong_is_believed_from_its_second_beat_on() -> None:
    stage = Stage()
    stage.cluster.node(piled("n", 3))
    assert stage.cluster.heartbeat("n", 100.0, 1000.0) == NONE
    assert stage.cluster.heartbeat("n", 110.0, 1010.0) == NODE
    assert stage.why_not(now=1050.0) == {}


def test_a_clock_that_is_ahead_makes_no_beat_last_longer() -> None:
    stage = Stage()
    stage.cluster.node(piled("n", 3))
    stage.cluster.heartbeat("n", 9999.0, 1000.0)
    assert stage.why_not(now=1040.1) == {"node(s) had no heartbeat of the advertiser": ["n"]}


def test_a_beat_that_comes_before_its_node_is_kept() -> None:
    stage = Stage()
    assert stage.cluster.heartbeat("n", 0.0, 0.0) == NONE
    stage.cluster.node(piled("n", 3))
    assert stage.why_not(now=1.0) == {}


def test_the_slot_of_a_node_that_is_gone_says_nothing_of_the_next() -> None:
    stage = Stage(piled("m", 1), node("n"))
    stage.cluster.node_gone("n")
    assert stage.why_not() == {}
    stage.cluster.node(piled("o", 3))
    stage.cluster.heartbeat("o", 0.0, 0.0)
    assert stage.why_not() == {}


def test_room_that_is_promised_to_a_pod_counts_against_those_that_are_no_more_important() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(pod("first", cpu="6", priority=5, nominated="n"))
    assert stage.why_not(priority=5) == {}, "who needs no CPU takes none away"
    request = wanting(0, cpu_milli=3000)
    for priority, reasons in ((5, ["Insufficient cpu"]), (4, ["Insufficient cpu"]), (6, [])):
        barred = stage.cluster.barred(pod("new", priority=priority), request, 0.0)
        assert [str(each.reason) for each in barred] == reasons
    assert stage.cluster.barred(pod("first", priority=5), request, 0.0) == []


@pytest.mark.parametrize(
    "end",
    [
        pod("first", cpu="6"),
        pod("first", cpu="6", node="elsewhere"),
        pod("first", cpu="6", phase="Failed"),
        pod("first", cpu="6", nominated="m"),
    ],
)
def test_a_promise_ends_with_its_pod_s_waiting_or_with_another(end: object) -> None:
    stage = Stage(piled("n", 3))
    stage.pod(pod("first", cpu="6", nominated="n"))
    assert stage.pod(end) >= FREED  # type: ignore[arg-type]
    assert stage.cluster.barred(pod("new"), wanting(0, cpu_milli=3000), 0.0) == []
