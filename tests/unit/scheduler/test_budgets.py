"""Pods whose containers use one grant are placed, counted, recovered, evicted and explained like one container's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partage_plugins.api import GPU, Allocation, BudgetName, NodeName, Reads, grantee_of, keys
from partage_plugins.codecs import encode_allocation
from partage_scheduler.cycle import Bind
from partage_scheduler.explanation import explain, stand
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Waiting
from support.objects import given, pod
from unit.scheduler.cluster.cards import carded
from unit.scheduler.preemption.stage import Preempted, running
from unit.scheduler.test_deciding_on_pods import NOW

POD = grantee_of(BudgetName("pod"))


def of_two(name: str, milli: int, *, memory: str = "", notes: dict[str, str] | None = None, **fields: Any) -> ApiPod:
    """A pod of two containers that use one budget of `milli`."""
    limits = {keys.GPU_MILLI: str(milli)} | ({keys.GPU_MEMORY: memory} if memory else {})
    containers = [{"name": each, "resources": {"limits": limits}} for each in "ab"]
    return pod(name, annotations={keys.BUDGET: "pod", **(notes or {})}, containers=containers, **fields)


def bound(stage: Preempted, waiting: ApiPod) -> Allocation:
    (verdict,) = stage.cycle.decide(Waiting((waiting,)), NOW)
    assert isinstance(verdict, Bind), verdict
    return verdict.decision.allocation


def test_a_budget_of_600_fits_beside_400_and_nothing_beside_both() -> None:
    stage = Preempted(m=1)
    allocation = bound(stage, of_two("a", 600))
    assert {name: grant.share_milli for name, (grant,) in allocation.of(GPU).items()} == {POD: 600}
    written = json.loads(encode_allocation(allocation))
    assert written["containers"] == {each: {"gpu": {"budget": "pod"}} for each in "ab"}
    assert stage.decides(of_two("b", 400)) == "m"
    assert stage.decides(pod("c", milli=1)) is None


def test_a_scheduler_that_starts_again_counts_a_budget_once() -> None:
    written = given(bound(Preempted(m=1), of_two("a", 600)))
    again = Preempted(of_two("a", 600, notes=written, node="m"), m=1)
    assert again.decides(pod("b", milli=401)) is None
    assert again.decides(pod("b", milli=400)) == "m"
    again.cluster.pod_gone(of_two("a", 600).uid)
    assert again.decides(pod("c", milli=600)) == "m"


def test_of_a_pod_whose_allocation_is_not_known_its_budget_counts_once_on_each_card() -> None:
    stage = Preempted(of_two("a", 600, node="m"), m=2)
    assert stage.decides(pod("b", milli=401)) is None
    assert [stage.decides(pod(name, milli=400)) for name in ("b", "c")] == ["m", "m"]


def test_no_more_pods_leave_for_a_budget_than_it_takes_once() -> None:
    low = [running(name, "m", 0, milli) for name, milli in (("a", 500), ("b", 300), ("c", 200))]
    stage = Preempted(*low, m=1)
    assert stage.chosen(of_two("new", 500, priority=9)) == ("m", ["a"])
    victims = stage.victims(of_two("new", 500, priority=9))
    stage.keep(of_two("new", 500, priority=9), victims)
    stage.send_away(victims)
    assert stage.decides(pod("other", milli=1)) is None, "the room is kept"
    assert stage.decides(of_two("new", 500, priority=9)) == "m"


def test_a_pod_with_a_budget_leaves_for_a_more_important_one() -> None:
    written = given(bound(Preempted(m=1), of_two("a", 600)))
    stage = Preempted(of_two("a", 600, notes=written, node="m"), m=1)
    assert stage.chosen(pod("new", milli=500, priority=9)) == ("m", ["a"])
    assert stage.decides(pod("new", milli=400, priority=9)) == "m", "no pod need leave for as much as is free"


def test_who_asks_about_a_pod_is_told_of_its_budget_once() -> None:
    written = given(bound(Preempted(m=1), of_two("a", 600)))
    there = of_two("a", 600, notes=written, node="m")
    stage = Preempted(there, m=1)
    report = stand(stage.finder, there, NOW, lacking=lambda _pod: 0, flagged=stage.cluster.verified.flagged)
    assert [(each.container, each.share_milli) for each in report.given] == [(POD, 600)]
    found = explain(stage.cycle, of_two("new", 500, memory="1Gi"), NOW)
    assert "budget pod: a share of at most 400 milli of a card" in [each.change for each in found.helps]


@pytest.mark.parametrize("budget", [True, False])
def test_a_node_that_reads_no_budgets_is_named_with_what_to_do(*, budget: bool) -> None:
    stage = Preempted()
    stage.cluster.node(carded("old", "ok", reads=Reads()))
    stage.cluster.heartbeat("old", NOW, NOW)
    if not budget:
        assert stage.decides(pod("a", milli=500)) == "old"
        return
    stay = stage.stays(of_two("a", 500))
    assert stay.message == (
        "0/1 nodes are available: 1 node(s) can't read budgets of several containers: upgrade partage there."
    )
    (node,) = explain(stage.cycle, of_two("a", 500), NOW).nodes
    assert (node.node, node.codes) == (NodeName("old"), ("no-budgets",))
