"""Gangs are placed all or none, without a deadlock, and get a message when members are missing."""

from __future__ import annotations

import pytest

from partage_plugins.api import PodUid, keys
from partage_plugins.codecs import read_gang
from partage_plugins.errors import DecodeError
from partage_scheduler.cluster.cluster_events import ClusterEvent
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Queue, QueueSettings
from support.objects import pod

FREED = frozenset((ClusterEvent.FREED,))
NONE: frozenset[ClusterEvent] = frozenset()


def members(count: int, *, size: int = 3, gang: str = "train") -> list[ApiPod]:
    return [pod(f"{gang}-{number}", gang=gang, size=size) for number in range(count)]


class Stage:
    """A queue, and the number of running pods of each gang."""

    def __init__(self, *pods: ApiPod, timeout_s: float = 60.0) -> None:
        self.running: dict[str, int] = {}
        self.queue = Queue(
            QueueSettings(gang_timeout_s=timeout_s), placed_on=lambda gang: self.running.get(gang.name, 0)
        )
        self.offer(*pods)

    def offer(self, *pods: ApiPod, now: float = 0.0) -> None:
        for each in pods:
            self.queue.offer(each, now)

    def next(self, now: float = 0.0) -> list[str] | None:
        waiting = self.queue.next(now)
        return None if waiting is None else [each.name for each in waiting.pods]

    def bound(self, *pods: str) -> None:
        for name in pods:
            gang = name.rpartition("-")[0]
            self.running[gang] = self.running.get(gang, 0) + 1
            self.queue.withdraw(PodUid(f"uid-{name}"))

    def failed(self, *pods: str, cluster_events: frozenset[ClusterEvent] = FREED, now: float = 0.0) -> None:
        for name in pods:
            self.queue.failed(PodUid(f"uid-{name}"), cluster_events, now)


def test_a_gang_comes_up_as_one_when_its_last_pod_is_there() -> None:
    stage = Stage(*members(2))
    assert stage.next() is None
    stage.offer(*members(3))
    assert stage.next() == ["train-0", "train-1", "train-2"]
    assert stage.next() is None


def test_a_group_of_kubeshare_comes_up_as_one_too() -> None:
    said = {"group_name": "train", "group_headcount": "3", "group_threshold": "0.6"}
    labels = {f"sharedgpu/{key}": value for key, value in said.items()}
    stage = Stage(pod("train-0", labels=labels))
    assert stage.next() is None
    stage.offer(pod("train-1", labels=labels))
    assert stage.next() == ["train-0", "train-1"]


def test_a_gated_pod_is_not_there() -> None:
    stage = Stage(*members(2), pod("train-2", gang="train", size=3, gates=("one",)))
    assert stage.next() is None
    stage.offer(*members(3))
    assert stage.next() == ["train-0", "train-1", "train-2"]


def test_gangs_of_one_name_in_two_namespaces_or_of_two_sizes_are_two() -> None:
    stage = Stage(*members(2), pod("train-2", gang="train", size=4))
    assert stage.next() is None


def test_more_pods_than_its_size_come_up_one_by_one_after_it() -> None:
    stage = Stage(*members(5))
    assert stage.next() == ["train-0", "train-1", "train-2"]
    stage.bound("train-0", "train-1", "train-2")
    assert stage.next() == ["train-3"]
    stage.failed("train-3")
    stage.queue.happened(FREED, 5.0)
    assert stage.next(5.0) == ["train-4"]


def test_a_gang_fails_as_one_and_comes_up_as_one() -> None:
    stage = Stage(*members(3))
    stage.next()
    stage.failed("train-0", "train-1", cluster_events=NONE)
    assert stage.next(99.0) is None
    stage.failed("train-2")
    stage.queue.happened(FREED, 99.0)
    assert sorted(stage.next(99.0) or []) == ["train-0", "train-1", "train-2"]


def test_what_was_left_behind_of_a_gang_of_which_others_are_bound_comes_up_alone() -> None:
    stage = Stage(*members(3))
    stage.next()
    stage.bound("train-0", "train-1")
    stage.failed("train-2", cluster_events=frozenset((ClusterEvent.TIME,)))
    assert stage.next(1.0) == ["train-2"]


def test_after_a_restart_the_rest_of_a_gang_comes_up_as_one() -> None:
    stage = Stage()
    stage.running["train"] = 1
    stage.offer(*members(2))
    assert stage.next() == ["train-0", "train-1"]


def test_a_gang_that_lost_a_pod_before_it_was_its_turn_waits_for_another() -> None:
    stage = Stage(*members(3))
    stage.queue.withdraw(PodUid("uid-train-1"))
    assert stage.next() is None
    assert stage.queue.sizes()["gathering"] == 2


def test_a_gang_that_waits_too_long_is_told_how_many_it_lacks_and_again_later() -> None:
    stage = Stage(*members(2), timeout_s=60.0)
    for now in (60.0, 120.0):
        assert stage.queue.due == now
        assert stage.queue.next(now - 1) is None
        waiting = stage.queue.next(now)
        assert waiting is not None
        assert (waiting.lacking, len(waiting.pods)) == (1, 2)
        stage.failed("train-0", "train-1", now=now)
    stage.offer(*members(3), now=130.0)
    assert len(stage.next(130.0) or []) == 3


def test_the_pod_that_comes_while_a_gang_is_told_that_it_lacks_one_is_not_overlooked() -> None:
    stage = Stage(*members(2), timeout_s=60.0)
    assert len(stage.next(60.0) or []) == 2
    stage.offer(*members(3), now=60.0)
    stage.failed("train-0", "train-1", now=60.0)
    assert len(stage.next(60.0) or []) == 3


def test_a_gang_goes_by_its_lowest_priority_and_its_oldest_pod() -> None:
    low, high = pod("g-0", gang="g", size=2, priority=1, created=1), pod("g-1", gang="g", size=2, priority=9, created=9)
    stage = Stage(low, high, pod("middle", priority=5), pod("younger", priority=1, created=2))
    assert [stage.next() for _ in range(3)] == [["middle"], ["g-0", "g-1"], ["younger"]]


def test_a_pod_that_joins_or_leaves_a_gang_by_its_annotations_is_moved() -> None:
    stage = Stage(*members(1, size=2))
    stage.offer(pod("train-0"))
    assert stage.next() == ["train-0"]
    assert stage.queue.sizes()["gathering"] == 0


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({keys.GANG: "train"}, "partage.dev/gang-size is not there; allowed: beside partage.dev/gang, how many pods"),
        ({keys.GANG_SIZE: "2"}, "partage.dev/gang is not there; allowed: the gang's name beside partage.dev/gang-size"),
        ({keys.GANG: "a b", keys.GANG_SIZE: "2"}, "partage.dev/gang is 'a b'; allowed: the gang's name"),
        ({keys.GANG: "a", keys.GANG_SIZE: "0"}, "partage.dev/gang-size is '0'; allowed: from 1 to 1000"),
        (
            {keys.GANG: "a", keys.GANG_SIZE: "1001"},
            "partage.dev/gang-size is '1001'; allowed: a whole quantity from 0 to 1000",
        ),
        (
            {keys.GANG: "a", keys.GANG_SIZE: "two"},
            "partage.dev/gang-size is 'two'; allowed: a whole quantity from 0 to 1000",
        ),
    ],
)
def test_a_gang_that_is_written_wrongly_is_refused(annotations: dict[str, str], why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        read_gang("team", annotations, {})


def test_and_its_pod_comes_up_alone_to_be_told_so() -> None:
    stage = Stage(pod("a", gang="train"))
    assert stage.next() == ["a"]
