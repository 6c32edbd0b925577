"""Which pod holds what, for any order of watch events."""

from __future__ import annotations

import pytest

from partage_plugins.api import Gang, Namespace, PodUid
from support.objects import pod
from unit.scheduler.cluster.stage import FREED, NONE, POD, Stage, bound, holding, piled

A = PodUid("uid-a")


def test_a_pod_of_anybody_s_counts_on_its_node() -> None:
    stage = Stage(piled("n", 3))
    assert stage.pod(pod("a", node="n", cpu="2", schedulerName="default-scheduler")) == POD
    assert stage.left("n") == (3, 6000, 8)
    assert A in stage.rules.pods


def test_devices_count_by_their_allocation() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(holding("a", "n", "t0", "t2", cpu="2"))
    assert stage.left("n") == (1, 6000, 8)
    assert not stage.cluster.verified.flagged


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_holds_nothing(phase: str) -> None:
    stage = Stage(piled("n", 3))
    stage.pod(holding("a", "n", "t0", cpu="2", version=1))
    assert stage.pod(holding("a", "n", "t0", cpu="2", version=2, phase=phase)) == FREED
    assert stage.left("n") == (3, 8000, 8)
    assert not stage.rules.pods
    assert stage.pod(holding("a", "n", "t0", cpu="2", version=1)) == NONE
    assert stage.left("n") == (3, 8000, 8)


def test_a_pod_that_is_being_deleted_holds_until_it_is_gone() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(holding("a", "n", "t0", version=1))
    assert stage.pod(holding("a", "n", "t0", version=2, going=True)) == POD
    assert stage.rules.pods[A][1].is_going
    assert stage.left("n") == (2, 8000, 8)
    assert stage.event_handlers.gone(A) == FREED
    assert stage.event_handlers.gone(A) == NONE
    assert stage.left("n") == (3, 8000, 8)


def test_versions_that_are_no_numbers_are_told_apart_all_the_same() -> None:
    stage = Stage(piled("n", 3))
    for _ in range(2):
        stage.pod(holding("a", "n", "t0", cpu="2"))
        stage.pod(pod("a", cpu="2"))
    assert stage.left("n") == (2, 6000, 8)


def test_an_assumed_pod_counts_at_once_and_is_confirmed_by_the_watch_however_often() -> None:
    stage, waiting = Stage(piled("n", 3)), pod("a", cpu="2", version=1)
    stage.pod(waiting)
    decision = stage.assume(waiting, 2)
    assert stage.left("n") == (1, 6000, 8)
    stage.cluster.confirmed(A)
    assert stage.pod(pod("a", cpu="2", version=1)) == NONE
    assert stage.pod(bound(waiting, decision, version=2)) == POD
    stage.cluster.confirmed(A)
    assert stage.pod(bound(waiting, decision, version=3)) == NONE
    assert stage.left("n") == (1, 6000, 8)
    assert not stage.verified, "it is what we decided"


def test_a_pod_is_not_assumed_twice() -> None:
    stage = Stage(piled("n", 3))
    decision = stage.assume(pod("a"), 1)
    with pytest.raises(ValueError, match="pod uid-a is on a node already, or assumed to be"):
        stage.cluster.assume(pod("a"), decision)


@pytest.mark.parametrize("said", ["seen", "confirmed"])
def test_what_is_bound_is_not_undone(said: str) -> None:
    stage, waiting = Stage(piled("n", 3)), pod("a")
    decision = stage.assume(waiting, 2)
    if said == "seen":
        stage.pod(bound(waiting, decision))
    else:
        stage.cluster.confirmed(A)
    assert stage.cluster.undo(A) == NONE
    assert stage.left("n") == (1, 8000, 8)


def test_an_assumed_pod_that_was_bound_there_by_somebody_else_has_no_devices() -> None:
    stage = Stage(piled("n", 3))
    stage.assume(pod("a"), 2)
    assert stage.pod(pod("a", node="n")) == FREED | POD
    assert stage.left("n") == (3, 8000, 8)


def test_a_pod_that_waits_may_have_any_annotation_and_it_counts_for_nothing() -> None:
    stage = Stage(piled("n", 3))
    waiting = pod("a", annotations=dict(holding("a", "n", "t0", "t1", signature="forged").metadata.annotations))
    assert stage.pod(waiting) == NONE
    assert not stage.cluster.verified.flagged
    decision = stage.assume(waiting, 1)
    stage.pod(bound(waiting, decision))
    assert stage.left("n") == (2, 8000, 8)


def test_a_pod_is_verified_once_and_not_at_each_event() -> None:
    stage = Stage(piled("n", 3))
    for version in range(1, 5):
        stage.pod(holding("a", "n", "t0", version=version, labels={"version": str(version)}))
    assert stage.verified == ["a"]


def test_a_pod_that_is_resized_while_it_runs_counts_anew() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(holding("a", "n", "t0", cpu="4", version=1))
    assert stage.pod(holding("a", "n", "t0", cpu="5", version=2)) == POD
    assert stage.left("n") == (2, 3000, 8)
    assert stage.pod(holding("a", "n", "t0", cpu="2", version=3)) == POD | FREED
    assert stage.left("n") == (2, 6000, 8)
    assert stage.verified == ["a"]


def test_init_containers_count_as_the_most_that_runs_at_once() -> None:
    stage = Stage(piled("n", 3))
    init = [{"name": f"i{cpu}", "resources": {"requests": {"cpu": cpu}}} for cpu in ("3", "5")]
    stage.pod(pod("a", node="n", cpu="2", initContainers=init))
    assert stage.left("n") == (3, 3000, 8)


def test_pods_of_a_gang_are_counted_while_they_are_on_nodes_or_assumed_there() -> None:
    stage, gang = Stage(piled("n", 3)), Gang(Namespace("team"), "train", 2)
    stage.pod(pod("a", node="n", gang="train", size=2), pod("b", gang="train", size=2))
    assert stage.cluster.placed_pods.placed_on(gang) == 1
    stage.assume(pod("b", gang="train", size=2), 0)
    assert stage.cluster.placed_pods.placed_on(gang) == 2
    stage.cluster.undo(PodUid("uid-b"))
    stage.event_handlers.gone(A)
    assert stage.cluster.placed_pods.placed_on(gang) == 0


def test_a_pod_on_a_node_leaves_its_gang_when_its_labels_do() -> None:
    stage, gang = Stage(piled("n", 3)), Gang(Namespace("team"), "train", 2)
    labels = {"sharedgpu/group_name": "train", "sharedgpu/min_available": "2"}
    stage.pod(pod("a", node="n", labels=labels, version=1))
    assert stage.cluster.placed_pods.placed_on(gang) == 1
    stage.pod(pod("a", node="n", version=2))
    assert stage.cluster.placed_pods.placed_on(gang) == 0
