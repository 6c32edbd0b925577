"""Checks of a scheduler plugin: what it is given and what it gave is shared, and stays as it is."""

from __future__ import annotations

from typing import Final

from partage_plugins.testing.checking import Case, Check, hold, unchanged
from partage_plugins.testing.scheduler_reading import strangers
from partage_plugins.testing.scheduler_stage import SchedulerStage, read_only, spelt_out
from partage_plugins.vocabulary.names import Slot
from partage_plugins.vocabulary.pods import PodRequest


def answers_stay_as_given(case: Case) -> None:
    """An answer stays as it was given while others are given: the core keeps it, so no array is used twice."""
    stage = SchedulerStage(case).told()
    pods = (*case.subject.pods, *strangers())
    for request in map(stage.side.requests, pods):
        verdict = stage.side.fits(request, stage.slots)
        fitting = read_only(stage.fitting(request))
        scores = stage.side.scores(request, fitting)
        before = spelt_out(verdict), scores.tolist()
        for other in map(stage.side.requests, pods):
            stage.scores(other, stage.fitting(other))
        hold(spelt_out(verdict) == before[0], "partage_fits changes an answer that it gave before")
        hold(scores.tolist() == before[1], "partage_scores changes an answer that it gave before")


def changes_no_input(case: Case) -> None:
    """Pods, requests, inventories, arrays of nodes and allocations are shared: all stay as they are."""
    stage = SchedulerStage(case)
    for number, inventory in enumerate(stage.inventories):
        with unchanged("partage_node_added", "the inventory", inventory):
            stage.node_added(Slot(number), inventory)
    for pod in case.subject.pods:
        with unchanged("partage_requests", "the pod", pod):
            request = stage.side.requests(pod)
        _check_asking_changes_nothing(stage, request)
        if case.subject.kind is not None:
            _check_counting_changes_nothing(stage, request)


def _check_asking_changes_nothing(stage: SchedulerStage, request: PodRequest) -> None:
    slots = stage.slots
    with unchanged("partage_shape", "the request", request):
        stage.shape(request)
    with unchanged("partage_fits", "the request", request), unchanged("partage_fits", "the slots", slots.tobytes()):
        stage.side.fits(request, slots)
    with unchanged("partage_scores", "the request", request):
        stage.scores(request, stage.fitting(request))


def _check_counting_changes_nothing(stage: SchedulerStage, request: PodRequest) -> None:
    for slot in stage.fitting(request)[:1]:
        with unchanged("partage_allocate", "the request", request):
            allocation = stage.allocation(request, slot)
        with unchanged("partage_take", "the allocation", allocation):
            stage.take(slot, allocation)
        with unchanged("partage_give_back", "the allocation", allocation):
            stage.give_back(slot, allocation)


CHECKS: Final[tuple[Check, ...]] = (answers_stay_as_given, changes_no_input)
