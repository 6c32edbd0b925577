"""Checks of a scheduler plugin: that it may be told of CPU and memory at any time, and leaves them to the host."""

from __future__ import annotations

from typing import Final

from partage_plugins.testing import examples
from partage_plugins.testing.check import Case, Check, hold
from partage_plugins.testing.scheduler_stage import Answers, SchedulerStage
from partage_plugins.vocabulary.allocation import Allocation
from partage_plugins.vocabulary.names import Slot
from partage_plugins.vocabulary.pods import Room

_GIB: Final = 1 << 30
_TOTAL: Final = Room(cpu_milli=64_000, memory_bytes=256 * _GIB)
_ROOMS: Final = (
    Room(cpu_milli=64_000, memory_bytes=256 * _GIB),
    Room(cpu_milli=1, memory_bytes=256 * _GIB),
    Room(cpu_milli=64_000, memory_bytes=1),
    Room(),
)


def leaves_rooms_to_the_host(case: Case) -> None:
    """However little CPU and memory a node has left, it fits as before: the host knows of them, a plugin prefers."""
    stage = SchedulerStage(case).told()
    requests = [stage.side.requests(pod) for pod in case.subject.pods]
    before = [stage.verdicts(request) for request in requests]
    for free in _ROOMS:
        _tell(stage, free)
        for request, verdicts in zip(requests, before, strict=True):
            hold(stage.verdicts(request) == verdicts, "partage_fits says no where only CPU and memory are short")
            stage.scores(request, stage.fitting(request))


def counts_whenever_told_of_rooms(case: Case) -> None:
    """Told of rooms before or after allocations, and however often, it answers the same."""
    early, late = SchedulerStage(case).told(), SchedulerStage(case).told()
    for free in _ROOMS:
        _tell(early, free)
    for slot, allocation in _some_taken(early):
        late.take(slot, allocation)
    _tell(late, _ROOMS[-1])
    _check_same(early, late, "told of rooms after allocations, not before")


def forgets_rooms_of_removed_nodes(case: Case) -> None:
    """A node whose room it was not told of counts as unlimited, whatever was in its slot before."""
    stage = SchedulerStage(case).told()
    _tell(stage, Room())
    for slot, _, inventory in stage.nodes():
        stage.node_removed(slot)
        stage.node_added(slot, inventory)
    _check_same(SchedulerStage(case).told(), stage, "after its node was removed and added again without a room")


def _tell(stage: SchedulerStage, free: Room) -> None:
    for slot, _, _ in stage.nodes():
        stage.node_room(slot, _TOTAL, free)


def _some_taken(stage: SchedulerStage) -> list[tuple[Slot, Allocation]]:
    if stage.subject.kind is not None:
        for number, pod in enumerate(stage.subject.pods):
            stage.placed(examples.like(pod, number))
    return stage.allocations()


def _check_same(one: SchedulerStage, other: SchedulerStage, when: str) -> None:
    for pod in one.subject.pods:
        before: Answers = one.answers(one.side.requests(pod))
        differing = before.difference(other.answers(other.side.requests(pod)))
        hold(not differing, f"{when}, the {differing} of pod {pod.ref.name} differ")


CHECKS: Final[tuple[Check, ...]] = (
    leaves_rooms_to_the_host,
    counts_whenever_told_of_rooms,
    forgets_rooms_of_removed_nodes,
)
