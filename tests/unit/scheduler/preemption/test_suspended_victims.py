"""Victims that may be suspended stay on their node, and their room is free only for pods of a higher priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from partage_plugins.api import GPU, NodeName, PodUid, Reads, Ready, SuspendedFor
from partage_plugins.api.keys import GPU_MILLI, SUSPEND
from partage_plugins.codecs import CRIT
from partage_plugins.codecs.suspension import SuspensionReport
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.cycle import Unschedulable
from partage_scheduler.objects import ApiPod
from partage_scheduler.preemption import Preemption
from partage_scheduler.preemption.suspension import may_suspend
from partage_scheduler.resize.room import against_resuming, suspended_words
from support.objects import given, pod
from unit.scheduler.cluster.cards import granted
from unit.scheduler.preemption.stage import TODAY, Preempted, running
from unit.scheduler.test_deciding_on_pods import NOW

LOW = PodUid("uid-low")
SOON = frozenset((ClusterEvent.FREED,))


def allowing(
    name: str = "low", milli: int = 800, *, gen: int = 1, by: str = "", word: str = "allowed", **more: Any
) -> ApiPod:
    """A pod on node m that may be suspended; with `by` it is, for the pod of that name."""
    made = running(name, "m", 0, milli, limits={GPU_MILLI: str(milli)}, **more)
    suspended = SuspendedFor(by=PodUid(f"uid-{by}"), at=int(TODAY)) if by else None
    allocation = replace(granted(f"uid-{name}", "m", 0, milli), gen=gen, suspended=suspended)
    notes = {**given(allocation), SUSPEND: word}
    return replace(made, metadata=replace(made.metadata, annotations=notes, resource_version=str(gen)))


def new(name: str = "new", milli: int = 500, priority: int = 5, **more: Any) -> ApiPod:
    return pod(name, milli=milli, priority=priority, **more)


@dataclass
class Suspending:
    stage: Preempted
    preemption: Preemption

    def consider(self, waiting: ApiPod) -> tuple[list[str], list[str]]:
        """Names of pods that are deleted, and of those that are suspended."""
        found = self.preemption.consider(Unschedulable(waiting, "nowhere", SOON), NOW)
        return [each.name for each in found.victims], [each.pod.name for each in self.preemption.suspensions()]

    def reports(self, *, gen: int = 2, is_done: bool = True, why: str = "", name: str = "low") -> None:
        report = SuspensionReport(gen=gen, is_done=is_done, why=why)
        self.stage.cluster.reported("m", {PodUid(f"uid-{name}"): report})

    def shares(self) -> list[int]:
        placed = self.stage.cluster.placed_pods.get(LOW)
        assert placed is not None
        return [usage.share_milli for usage in placed.usages]

    def against(self, name: str = "low") -> str | None:
        placed = self.stage.cluster.placed_pods.get(PodUid(f"uid-{name}"))
        assert placed is not None
        return against_resuming(self.stage.cycle, placed, NOW)

    def words(self) -> str:
        placed = self.stage.cluster.placed_pods.get(LOW)
        assert placed is not None
        return suspended_words(self.stage.cycle, placed, NOW)


def suspending(*pods: ApiPod, cards: int = 1) -> Suspending:
    stage = Preempted(*pods, m=cards)
    return Suspending(stage, Preemption(stage.finder))


def suspended(*others: ApiPod) -> Suspending:
    """Pod `low`, of 800 milli of the one card, is suspended for `new`, and its node reports it."""
    made = suspending(allowing(gen=2, by="new"), *others)
    made.reports()
    return made


def test_a_victim_that_allows_it_is_suspended_and_its_cards_count_until_its_node_reports() -> None:
    made = suspending(allowing())
    assert made.consider(new()) == ([], ["low"])
    assert made.shares() == [800]
    assert made.stage.decides(new()) is None
    assert made.consider(new()) == ([], []), "no further victim for the same pod"
    made.stage.cluster.pod(allowing(gen=2, by="new"))
    assert made.stage.decides(new()) is None
    made.reports(gen=1)
    made.reports(is_done=False)
    made.reports(why="no host memory", is_done=False)
    assert made.stage.decides(new()) is None
    made.reports()
    assert made.stage.decides(new()) == "m"
    assert made.shares() == [800]


def test_its_room_is_for_pods_of_a_higher_priority_alone() -> None:
    made = suspended()
    for priority in (0, -1):
        assert made.stage.decides(pod("equal", milli=300, priority=priority)) is None
    assert made.stage.decides(pod("beside", milli=200, priority=-1)) == "m"
    assert made.stage.decides(pod("higher", milli=800, priority=1)) == "m"
    assert made.stage.decides(pod("another", milli=100, priority=0)) is None


def test_its_room_is_taken_last() -> None:
    made = Suspending(stage := Preempted(allowing(gen=2, by="new"), m=1, n=1), Preemption(stage.finder))
    made.reports()
    assert made.stage.decides(new(milli=900)) == "n"
    assert made.stage.decides(new("next", milli=900)) == "m"


def test_a_report_that_is_withdrawn_makes_its_cards_count_again() -> None:
    made = suspended()
    assert ClusterEvent.FREED in made.stage.cluster.reported("m", {})
    assert made.stage.decides(new()) is None
    assert not made.stage.cluster.reported("m", {})


@pytest.mark.parametrize(
    "victim",
    [
        running("low", "m", 0, 800),
        allowing(word="yes"),
        allowing(milli=1000, priority=0),
    ],
    ids=["does not allow it", "says something else", "has a whole card"],
)
def test_other_victims_are_deleted(victim: ApiPod) -> None:
    assert suspending(victim).consider(new()) == (["low"], [])


@pytest.mark.parametrize(
    ("reads", "driver", "ready"),
    [
        (Reads(crit=tuple(each for each in CRIT if each != "suspended")), "580.1", Ready(crishim=True, broker=True)),
        (Reads(crit=CRIT), "565.57.01", Ready(crishim=True, broker=True)),
        (Reads(crit=CRIT), "unknown", Ready(crishim=True, broker=True)),
        (Reads(crit=CRIT), "580.1", Ready(crishim=True, broker=False)),
    ],
    ids=["an old node", "an old driver", "a driver without a number", "no broker"],
)
def test_a_node_that_can_not_suspend_is_not_asked_to(reads: Reads, driver: str, ready: Ready) -> None:
    made = suspending(allowing())
    placed, inventory = made.stage.cluster.placed_pods.get(LOW), made.stage.cluster.inventory(NodeName("m"))
    part = inventory.part(GPU)
    assert placed is not None
    assert part is not None
    assert may_suspend(placed, inventory)
    other = replace(inventory, reads=reads, ready=ready, kinds={GPU.name: replace(part, driver=driver)})
    assert not may_suspend(placed, other)


def test_a_victim_whose_cpu_is_needed_is_deleted() -> None:
    made = suspending(allowing(cpu="6"))
    assert made.consider(new(cpu="4")) == (["low"], [])


def test_of_two_victims_only_the_one_that_allows_it_stays() -> None:
    made = suspending(allowing(milli=400), running("other", "m", 0, 400))
    assert made.consider(new(milli=900)) == (["other"], ["low"])


def test_a_suspended_pod_may_still_leave_for_its_cpu() -> None:
    made = suspended()
    made.stage.cluster.pod(allowing(gen=2, by="new", cpu="6"))
    assert made.consider(new("big", milli=0, cpu="4")) == (["low"], [])


def test_it_is_resumed_when_its_room_is_free_again() -> None:
    made = suspended()
    assert made.against() is None
    made.stage.cluster.pod(running("new", "m", 0, 500, priority=5))
    assert "no room beside the others on its cards of node m: Insufficient GPU share" in str(made.against())
    made.stage.cluster.pod_gone(PodUid("uid-new"))
    assert made.against() is None


def test_what_is_held_for_a_higher_pod_comes_first() -> None:
    made = suspended()
    assert made.consider(new()) == ([], [])
    assert made.stage.cluster.waits_on(PodUid("uid-new"), NodeName("m"))
    assert made.against() is not None


def test_a_restarted_scheduler_finds_by_its_nomination_for_whom_it_waits() -> None:
    made = suspended()
    made.stage.cluster.pod(new(nominated="m", version=7))
    assert made.stage.cluster.waits_on(PodUid("uid-new"), NodeName("m"))
    assert not made.stage.cluster.waits_on(PodUid("uid-other"), NodeName("m"))


def test_whatever_its_owner_does_to_its_annotations_nothing_becomes_free() -> None:
    made = suspending(allowing())
    forged = allowing(gen=2, by="new")
    notes = {**forged.metadata.annotations, "alloc.partage.dev/signature": "bad"}
    made.stage.cluster.pod(replace(forged, metadata=replace(forged.metadata, annotations=notes)))
    made.reports()
    assert made.stage.decides(new()) is None
    made = suspended()
    bare = allowing(gen=2, by="new")
    made.stage.cluster.pod(replace(bare, metadata=replace(bare.metadata, annotations={}, resource_version="3")))
    assert made.stage.decides(pod("equal", milli=300)) is None


def test_its_words_say_for_whom_it_is_suspended_and_what_it_waits_for() -> None:
    made = suspending(allowing())
    assert made.words() == ""
    made.stage.cluster.pod(allowing(gen=2, by="new"))
    assert made.words() == "suspended for pod uid-new; its node is to take its memory off the card"
    made.reports(is_done=False, why="no host memory")
    assert made.words() == "suspended for pod uid-new; its node can't: no host memory"
    made.reports()
    made.stage.cluster.pod(new(nominated="m", version=7))
    assert made.words() == "suspended for pod uid-new; that pod is about to take its room"
    made.stage.cluster.pod(running("new", "m", 0, 500, priority=5, version=8))
    assert made.words() == (
        "suspended for pod team/new; it is resumed once its room is free: no room beside the others on its cards of "
        "node m: Insufficient GPU share"
    )
    made.stage.cluster.pod_gone(PodUid("uid-new"))
    assert made.words() == "suspended for pod uid-new; its room is free again, and it is resumed"


def test_a_what_if_view_restores_everything() -> None:
    made = suspended()
    placed = made.stage.cluster.placed_pods.get(LOW)
    assert placed is not None
    before = placed.allocation
    with made.stage.cluster.suspensions.lifted(new()):
        assert placed.usages == ()
        with made.stage.cluster.what_if() as world:
            world.suspend(placed)
            world.remove(placed)
            world.back(placed)
        assert placed.usages == ()
    assert placed.allocation is before
    assert placed.allocation.of(GPU)
