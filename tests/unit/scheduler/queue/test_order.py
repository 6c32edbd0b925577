"""When pods come up, and in which order."""

from __future__ import annotations

import pytest

from partage_plugins.api import PodUid
from partage_scheduler.cluster.cluster_events import ClusterEvent
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Queue
from support.objects import pod

FREED, POD, TIME = frozenset((ClusterEvent.FREED,)), frozenset((ClusterEvent.POD,)), frozenset((ClusterEvent.TIME,))
NONE: frozenset[ClusterEvent] = frozenset()
A = PodUid("uid-a")


def queue_of(*pods: ApiPod) -> Queue:
    queue = Queue()
    for each in pods:
        queue.offer(each, 0.0)
    return queue


def names(queue: Queue, now: float = 0.0) -> list[str]:
    """All pods that come up now, in their order; they stay in flight."""
    found: list[str] = []
    while (waiting := queue.next(now)) is not None:
        found += [each.name for each in waiting.pods]
    return found


def fail(queue: Queue, cluster_events: frozenset[ClusterEvent], now: float, *pods: str) -> None:
    assert names(queue, now) == list(pods)
    for each in pods:
        queue.failed(PodUid(f"uid-{each}"), cluster_events, now)


def test_the_higher_priority_comes_first_then_the_older_then_the_one_offered_first() -> None:
    queue = queue_of(
        pod("c", created=5),
        pod("d", created=5),
        pod("b", created=1),
        pod("a", priority=9, created=9),
        pod("z", priority=-1),
    )
    assert names(queue) == ["a", "b", "c", "d", "z"]


@pytest.mark.parametrize(
    "other", [pod("a", node="n"), pod("a", phase="Succeeded"), pod("a", going=True)], ids=["bound", "ended", "going"]
)
def test_what_is_not_to_be_placed_is_not_queued(other: ApiPod) -> None:
    queue = queue_of(pod("a"))
    queue.offer(other, 1.0)
    assert names(queue, 99.0) == []
    assert A not in queue


def test_a_gated_pod_comes_up_when_its_last_gate_is_gone() -> None:
    queue = queue_of(pod("a", gates=("one", "two")))
    queue.offer(pod("a", gates=("two",)), 1.0)
    queue.happened(frozenset(ClusterEvent), 2.0)
    assert names(queue, 99.0) == []
    assert queue.sizes()["gated"] == 1
    queue.offer(pod("a"), 100.0)
    assert names(queue, 100.0) == ["a"]


def test_an_idle_queue_lets_a_pod_go_first_whose_cause_came_while_it_rests_but_once_for_each_rest() -> None:
    queue = queue_of(pod("a"))
    fail(queue, FREED, 0.0, "a")
    queue.happened(FREED, 0.1)
    fail(queue, FREED, 0.1, "a")
    queue.happened(FREED, 0.2)
    assert names(queue, 0.3) == []
    assert queue.due == pytest.approx(2.1)
    assert names(queue, 2.1) == ["a"]


def test_who_rests_goes_after_all_who_are_ready() -> None:
    queue = queue_of(pod("a", priority=9))
    fail(queue, FREED, 0.0, "a")
    queue.happened(FREED, 0.1)
    queue.offer(pod("b"), 0.2)
    assert names(queue, 0.2) == ["b", "a"]


def test_rests_double_up_to_the_most_and_time_alone_ends_them_where_time_is_the_cause() -> None:
    queue, now, rests = queue_of(pod("a")), 0.0, list[float]()
    for _ in range(6):
        fail(queue, TIME, now, "a")
        assert queue.due is not None
        assert names(queue, queue.due - 0.001) == []
        rests.append(queue.due - now)
        now = queue.due
    assert rests == [1, 2, 4, 8, 10, 10]


def test_an_event_does_not_end_a_rest_after_an_error() -> None:
    queue = queue_of(pod("a"))
    fail(queue, TIME, 0.0, "a")
    queue.happened(frozenset(ClusterEvent) - TIME, 0.1)
    assert names(queue, 0.9) == []
    assert names(queue, 1.0) == ["a"]


def test_a_pod_that_is_another_than_before_comes_up_and_one_that_only_reports_does_not() -> None:
    queue = queue_of(pod("a"))
    fail(queue, NONE, 0.0, "a")
    queue.offer(pod("a", version=2), 5.0)
    assert names(queue, 5.0) == []
    queue.offer(pod("a", labels={"new": "yes"}), 6.0)
    assert names(queue, 6.0) == ["a"]
    queue.offer(pod("a", labels={"newer": "yes"}), 7.0)
    queue.failed(A, NONE, 7.0)
    assert names(queue, 9.0) == ["a"]


def test_who_left_leaves_nothing_behind() -> None:
    queue = Queue()
    for number in range(1000):
        queue.offer(pod("a"), float(number))
        fail(queue, TIME, float(number), "a")
        queue.withdraw(A)
    assert len(vars(vars(queue)["_timed"])["_heap"]) < 200
