"""What leaves for a pod is kept for it, cards with the rest, against pods of the same and of a lower priority."""

from __future__ import annotations

from partage_plugins.vocabulary import PodUid
from partage_scheduler.cluster import Cause
from support.objects import pod
from unit.scheduler.cluster.cards import carded
from unit.scheduler.preemption.stage import Preempted, running

UID = PodUid("uid-new")


def waiting() -> tuple[Preempted, PodUid]:
    """One card, of which `low` has 800 milli; `new` waits for it to leave."""
    stage = Preempted(running("low", "m", 0, 800), m=1)
    new = pod("new", milli=500, priority=5)
    stage.keep(new, stage.victims(new))
    return stage, PodUid("uid-low")


def test_before_and_after_the_victim_has_left_no_lower_and_no_equal_pod_gets_it() -> None:
    stage, low = waiting()
    for _ in range(2):
        assert stage.decides(pod("lower", milli=600, priority=4)) is None
        assert stage.decides(pod("equal", milli=600, priority=5)) is None
        stage.cluster.pod_gone(low)
    assert stage.decides(pod("new", milli=500, priority=5)) == "m"
    assert stage.cluster.kept.node_of(UID) is None


def test_a_higher_pod_takes_it_and_the_one_that_waited_is_told() -> None:
    stage, low = waiting()
    stage.cluster.pod_gone(low)
    assert stage.decides(pod("higher", milli=600, priority=6)) == "m"
    assert [each.uid for each in stage.cluster.pointless()] == [UID]
    assert stage.cluster.kept.node_of(UID) is None
    assert stage.decides(pod("new", milli=500, priority=5)) is None


def test_a_pod_that_was_bound_elsewhere_meanwhile_keeps_nothing() -> None:
    stage, low = waiting()
    stage.cluster.node(carded("n", "ok"))
    stage.cluster.pod_gone(low)
    assert Cause.FREED in stage.cluster.pod(pod("new", node="n", milli=500, priority=5))
    assert stage.decides(pod("lower", milli=1000)) == "m"


def test_a_node_that_goes_takes_it_along() -> None:
    stage, _ = waiting()
    stage.cluster.node_gone("m")
    assert [each.uid for each in stage.cluster.pointless()] == [UID]
    stage.cluster.node(carded("m", "ok", uid="another"))
    assert stage.cluster.kept.node_of(UID) is None
    assert stage.decides(pod("lower", milli=200)) == "m"


def test_another_inventory_changes_nothing_of_it() -> None:
    stage, low = waiting()
    stage.cluster.node(carded("m", "ok", "lost"))
    stage.cluster.pod_gone(low)
    assert stage.decides(pod("lower", milli=600, priority=4)) is None
    assert stage.decides(pod("new", milli=500, priority=5)) == "m"


def test_it_counts_once_however_the_pod_is_nominated() -> None:
    stage = Preempted(running("low", "m", cpu="6"), m=0)
    new = pod("new", cpu="4", priority=5)
    stage.keep(new, stage.victims(new))
    stage.cluster.pod(pod("new", cpu="4", priority=5, nominated="m", version=7))
    stage.cluster.pod_gone(PodUid("uid-low"))
    assert stage.decides(pod("lower", cpu="4", priority=0)) == "m"


def test_nobody_is_placed_near_a_pod_that_is_not_there_yet() -> None:
    stage = Preempted(running("low", "m", 0, 800), m=1)
    new = pod("new", milli=500, priority=5, labels={"app": "db"})
    stage.keep(new, stage.victims(new))
    near = {"topologyKey": "name", "labelSelector": {"matchLabels": {"app": "db"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    assert stage.decides(pod("friend", affinity=affinity)) is None
