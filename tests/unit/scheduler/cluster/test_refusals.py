"""The owner's next pod does not run into the node whose kubelet had no room for the last one."""

from __future__ import annotations

import pytest

from partage_plugins.vocabulary import NodeName
from partage_scheduler.cluster.refusals import REFUSED, RESTS_S, Refusals
from unit.scheduler.cluster.stage import Stage, piled
from unit.scheduler.cluster_made import pod
from unit.scheduler.test_deciding_on_pods import Stage as Deciding

REFUSAL = {"phase": "Failed", "reason": "OutOfcpu"}
SLOTS = {NodeName("m"): 0, NodeName("n"): 1}


def test_the_node_is_not_chosen_for_its_namespace_until_it_has_rested() -> None:
    stage = Stage(piled("m", 2), piled("n", 2))
    stage.pod(pod("a", node="n", **REFUSAL))
    assert stage.why_not(now=RESTS_S - 1) == {str(REFUSED): ["n"]}
    assert stage.why_not(now=RESTS_S) == {}


@pytest.mark.parametrize(
    "told",
    [
        pod("a", node="n", namespace="other", **REFUSAL),
        pod("a", node="n", schedulerName="default-scheduler", **REFUSAL),
        pod("a", node="n", phase="Failed", reason="Evicted"),
        pod("a", node="n", phase="Failed"),
        pod("a", node="n", phase="Running", reason="OutOfcpu"),
        pod("a", phase="Failed", reason="OutOfcpu"),
    ],
    ids=["of another namespace", "of another scheduler", "evicted", "ended", "runs", "was never there"],
)
def test_nothing_else_keeps_pods_away(told: object) -> None:
    stage = Stage(piled("n", 2))
    stage.pod(told)  # type: ignore[arg-type]  # a parameter
    assert stage.why_not() == {}


def test_refusals_of_long_ago_do_not_count_after_a_restart() -> None:
    stage = Stage(piled("n", 2))
    stage.intake.listed([pod("a", node="n", **REFUSAL)])
    assert stage.why_not() == {}


def test_each_refusal_starts_the_rest_again_and_what_is_over_is_forgotten() -> None:
    refusals, node = Refusals(), NodeName("n")

    def rests(now: float) -> bool:
        return any(each.has(1) for each in refusals.barred("team", now, 2, SLOTS.get))  # type: ignore[arg-type]

    refusals.put("team", node, 0.0)
    refusals.put("team", NodeName("m"), 1.0)
    refusals.put("team", node, 10.0)
    assert [rests(RESTS_S), rests(RESTS_S + 9), rests(RESTS_S + 10)] == [True, True, False]
    assert not rests(RESTS_S + 9), "it is gone for good"


def test_the_next_pod_goes_elsewhere_or_is_tried_again_without_any_event() -> None:
    stage = Deciding(m=1, n=1)
    stage.cluster.refused(pod("a", node="m", **REFUSAL), 0.0)
    assert stage.place(pod("b", milli=600)) == ["n"]
    stays = stage.stays(pod("c", milli=600))
    assert "1 node(s) just refused a pod of this namespace" in stays.message
    assert "TIME" in {cause.name for cause in stays.causes}
