"""Namespaces take turns: one that floods the queue, or whose pods are slow to schedule, delays only itself."""

from __future__ import annotations

from partage_plugins.api import PodUid
from partage_scheduler.cluster.cluster_events import ClusterEvent
from partage_scheduler.queue import Queue
from support.objects import pod

FREED = frozenset((ClusterEvent.FREED,))


def flooded(count: int, queue: Queue | None = None) -> Queue:
    queue = queue or Queue()
    for number in range(count):
        queue.offer(pod(f"flood-{number:04}", namespace="flood", created=number), 0.0)
    return queue


def come_up(queue: Queue, count: int, *, each_s: float = 0.0, now: float = 0.0) -> list[str]:
    found: list[str] = []
    while len(found) < count and (waiting := queue.next(now)) is not None:
        found += [each.name for each in waiting.pods]
        queue.took(waiting, each_s)
    return found


def test_a_pod_of_another_namespace_does_not_wait_for_a_flood() -> None:
    queue = flooded(1000)
    come_up(queue, 3)
    queue.offer(pod("quiet", namespace="quiet", created=3000), 0.0)
    assert "quiet" in come_up(queue, 2)


def test_two_that_flood_get_as_many_turns_and_each_of_them_its_oldest_first() -> None:
    queue = flooded(50)
    for number in range(50):
        queue.offer(pod(f"other-{number:04}", namespace="other", created=100 + number), 0.0)
    found = come_up(queue, 40)
    assert [name for name in found if name.startswith("flood")] == [f"flood-{number:04}" for number in range(20)]
    assert [name for name in found if name.startswith("other")] == [f"other-{number:04}" for number in range(20)]


def test_who_is_slow_to_decide_on_gets_as_much_time_and_fewer_turns() -> None:
    queue = flooded(100)
    for number in range(100):
        queue.offer(pod(f"quick-{number}", namespace="quick", created=200), 0.0)
    turns = {"flood": 0, "quick": 0}
    for _ in range(60):
        waiting = queue.next(0.0)
        assert waiting is not None
        namespace = waiting.pods[0].namespace
        turns[namespace] += 1
        queue.took(waiting, 0.1 if namespace == "flood" else 0.01)
    assert turns["quick"] >= 8 * turns["flood"]


def test_who_comes_back_is_owed_nothing_for_when_it_was_away() -> None:
    queue = flooded(100)
    come_up(queue, 50, each_s=1.0)
    for number in range(100):
        queue.offer(pod(f"back-{number}", namespace="back"), 0.0)
    found = come_up(queue, 20, each_s=1.0)
    assert sum(name.startswith("flood") for name in found) >= 9


def test_a_higher_priority_comes_first_whatever_its_namespace_has_had() -> None:
    queue = flooded(10)
    come_up(queue, 5, each_s=9.0)
    queue.offer(pod("quiet", namespace="quiet"), 0.0)
    queue.offer(pod("urgent", namespace="flood", priority=9), 0.0)
    assert come_up(queue, 2) == ["urgent", "quiet"]


def test_pods_that_fit_nowhere_and_are_tried_again_are_not_in_the_way_of_others() -> None:
    queue = flooded(1000)
    for name in come_up(queue, 1000):
        queue.failed(PodUid(f"uid-{name}"), FREED, 0.0)
    queue.happened(FREED, 60.0)
    come_up(queue, 10, now=60.0)
    queue.offer(pod("quiet", namespace="quiet", created=3000), 60.0)
    assert "quiet" in come_up(queue, 2, now=60.0)


def test_a_namespace_that_is_passed_over_keeps_its_place_and_others_come_up_whatever_their_priority() -> None:
    queue = flooded(3)
    queue.offer(pod("urgent", namespace="flood", priority=9), 0.0)
    for name in ("quiet", "modest"):
        queue.offer(pod(name, namespace=name, created=100), 0.0)
    first, second, third = (queue.next(0.0, {"flood"}) for _ in range(3))
    assert first is not None
    assert second is not None
    assert {first.pods[0].name, second.pods[0].name} == {"quiet", "modest"}
    assert third is None
    assert come_up(queue, 4) == ["urgent", "flood-0000", "flood-0001", "flood-0002"]


def test_a_gang_has_a_turn_as_one() -> None:
    queue = flooded(100)
    for number in range(3):
        queue.offer(pod(f"gang-{number}", namespace="team", gang="gang", size=3), 0.0)
    assert {"gang-0", "gang-1", "gang-2"} <= set(come_up(queue, 5))


def test_who_left_leaves_nothing_behind_in_the_lines() -> None:
    queue = Queue()
    for number in range(2000):
        name = f"p{number}"
        queue.offer(pod(name, namespace=f"space-{number % 7}", created=3000 - number), 0.0)
        queue.withdraw(PodUid(f"uid-{name}"))
    levels = vars(vars(queue)["_ready"])["_levels"]
    (level,) = levels.values()
    assert len(vars(level)["_turns"]) < 200
    assert queue.next(0.0) is None
    assert not levels
