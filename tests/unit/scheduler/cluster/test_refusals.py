"""The owner's next pod avoids the node whose kubelet rejected the last one for lack of room."""

from __future__ import annotations

from typing import Any

import pytest

from partage_plugins.api import NodeName
from partage_scheduler.cluster.refusals import REFUSED, RESTS_S, Refusals
from partage_scheduler.decision import SlotTable
from partage_scheduler.objects import ApiPod
from support.objects import pod
from unit.scheduler.cluster.stage import Stage, piled
from unit.scheduler.test_deciding_on_pods import Stage as Deciding


def refused(node: str = "n", *, namespace: str = "team", **spec: Any) -> ApiPod:
    return pod("a", node=node, namespace=namespace, phase="Failed", reason="OutOfcpu", **spec)


def test_the_node_is_not_chosen_for_its_namespace_until_it_has_rested() -> None:
    stage = Stage(piled("m", 2), piled("n", 2))
    stage.pod(refused())
    assert stage.why_not(now=RESTS_S - 1) == {str(REFUSED): ["n"]}
    assert stage.why_not(now=RESTS_S) == {}


@pytest.mark.parametrize(
    "told",
    [
        refused(namespace="other"),
        refused(schedulerName="default-scheduler"),
        pod("a", node="n", phase="Failed", reason="Evicted"),
        pod("a", node="n", phase="Failed"),
        pod("a", node="n", phase="Running", reason="OutOfcpu"),
        pod("a", phase="Failed", reason="OutOfcpu"),
    ],
    ids=["of another namespace", "of another scheduler", "evicted", "ended", "runs", "was never there"],
)
def test_nothing_else_keeps_pods_away(told: ApiPod) -> None:
    stage = Stage(piled("n", 2))
    stage.pod(told)
    assert stage.why_not() == {}


def test_refusals_of_long_ago_do_not_count_after_a_restart() -> None:
    stage = Stage(piled("n", 2))
    stage.event_handlers.listed([refused()])
    assert stage.why_not() == {}


def test_each_refusal_starts_the_rest_again_and_what_is_over_is_forgotten() -> None:
    refusals, node, slots = Refusals(), NodeName("n"), SlotTable()
    at = slots.give(node)

    def rests(now: float) -> bool:
        return any(each.has(at) for each in refusals.barred("team", now, slots))

    refusals.put("team", node, 0.0)
    refusals.put("team", NodeName("m"), 1.0)
    refusals.put("team", node, 10.0)
    assert [rests(RESTS_S), rests(RESTS_S + 9), rests(RESTS_S + 10)] == [True, True, False]
    assert not rests(RESTS_S + 9), "it is gone for good"


def test_the_next_pod_goes_elsewhere_or_is_tried_again_without_any_event() -> None:
    stage = Deciding(m=1, n=1)
    stage.cluster.refused(refused("m"), 0.0)
    assert stage.place(pod("b", milli=600)) == ["n"]
    stays = stage.stays(pod("c", milli=600))
    assert "1 node(s) just refused a pod of this namespace" in stays.message
    assert "TIME" in {cause.name for cause in stays.cluster_events}
