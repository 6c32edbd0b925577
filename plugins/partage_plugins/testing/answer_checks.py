"""Checks of a scheduler plugin's results for one node or thousands, and that computing them changes nothing.

The core calls a plugin once for each shape and keeps the result, so shapes decide which requests are computed, and both
arguments and results are shared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

from msgspec.structs import replace

from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import Slot
from partage_plugins.api.pods import Pod, PodRequest
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.testing import examples
from partage_plugins.testing.check import Case, check, hold, unchanged
from partage_plugins.testing.neighbours import NEIGHBOUR, NeighbourPart
from partage_plugins.testing.request_checks import strangers
from partage_plugins.testing.scheduler_stage import BARE, Answers, SchedulerStage, read_only, spelt_out

_MANY: Final = 5000
_ONE_BY_ONE: Final = 16


@check("scheduler")
def fits_somewhere(case: Case) -> None:
    """Each pod of the subject fits on one of its inventories; where one does not fit, there is a reason in words."""
    stage = SchedulerStage(case).told()
    for pod in case.subject.pods:
        verdict = stage.framework.fits(stage.framework.requests(pod), stage.slots)
        hold(verdict.fits.any(), f"partage_fits says that pod {pod.ref.name} fits on no inventory of the subject")
        _, reasons = verdict.reasons()
        in_words = all(str(reason).strip() for reason in reasons)
        hold(in_words, f"partage_fits gives {reasons!r:.200} as reasons")


@check("scheduler")
def scores_are_finite(case: Case) -> None:
    """Where a pod fits, its score is a finite number."""
    stage = SchedulerStage(case).told()
    for pod in case.subject.pods:
        request = stage.framework.requests(pod)
        scores = stage.scores(request, stage.fitting(request))
        hold(all(map(math.isfinite, scores)), f"partage_scores gives {scores}")


@check("scheduler")
def answers_the_same_twice(case: Case) -> None:
    """Fits and scores change no state: a second call returns the same."""
    stage = SchedulerStage(case).told()
    for request in map(stage.framework.requests, case.subject.pods):
        fitting = stage.fitting(request)
        hold(stage.verdicts(request) == stage.verdicts(request), "partage_fits answers differently the second time")
        same = stage.scores(request, fitting) == stage.scores(request, fitting)
        hold(same, "partage_scores answers differently the second time")


@check("scheduler")
def answers_for_any_number_of_nodes(case: Case) -> None:
    """It handles none, one and 5,000 nodes in one call each."""
    stage = SchedulerStage(case).told(list(islice(cycle(_inventories(case)), _MANY)))
    for request in map(stage.framework.requests, case.subject.pods):
        for number in (0, 1, _MANY):
            slots = stage.slots[:number]
            hold(len(stage.verdicts(request, slots)) == number, f"partage_fits fails for {number} nodes")
            hold(len(stage.scores(request, slots[:0])) == 0, "partage_scores fails for no node")
        stage.scores(request, stage.fitting(request))


@check("scheduler")
def answers_for_each_node_alone(case: Case) -> None:
    """Its result for a node does not depend on the other nodes in the call, nor on their order."""
    stage = SchedulerStage(case).told(_inventories(case) * 2)
    for request in map(stage.framework.requests, case.subject.pods):
        verdicts, fitting = stage.verdicts(request), stage.fitting(request)
        reversed_slots = read_only(stage.slots.tolist()[::-1])
        hold(stage.verdicts(request, reversed_slots) == verdicts[::-1], "partage_fits depends on the order of nodes")
        scores = stage.scores(request, fitting)
        hold(stage.scores(request, fitting[::-1]) == scores[::-1], "partage_scores depends on the order of nodes")
        for slot in stage.slots.tolist()[:_ONE_BY_ONE]:
            alone = stage.verdicts(request, read_only([slot]))
            hold(alone == verdicts[slot : slot + 1], "partage_fits depends on the other nodes in the call")
        for place, slot in enumerate(fitting[:_ONE_BY_ONE]):
            alone_scores = stage.scores(request, [slot])
            hold(alone_scores == scores[place : place + 1], "partage_scores depends on the other nodes in the call")


@check("scheduler", "kind")
def fits_nowhere_without_its_kind(case: Case) -> None:
    """A pod that requests its kind fits on no node without devices of that kind."""
    stage = SchedulerStage(case).told((BARE, _NEIGHBOURS))
    for request in map(stage.framework.requests, case.subject.pods):
        hold(all(stage.verdicts(request)), "partage_fits says yes for a node that has nothing of its kind")


@check("scheduler", "kind")
def fits_everywhere_for_other_pods(case: Case) -> None:
    """A pod that does not request its kind fits on every node."""
    stage = SchedulerStage(case).told((*_inventories(case), BARE))
    for pod in strangers():
        request = stage.framework.requests(pod)
        reasons = list(filter(None, stage.verdicts(request)))
        hold(not reasons, f"partage_fits says no to a pod that does not ask for its kind: {reasons[:1]}")
        stage.scores(request, stage.slots.tolist())
        stage.shape(request)


_NEIGHBOURS: Final = Inventory(kinds={NEIGHBOUR.name: NeighbourPart(("n0",))})


def _inventories(case: Case) -> tuple[Inventory, ...]:
    return SchedulerStage(case).inventories


_FACTORS: Final = (2, 3, 16)
_FILLING: Final = 64


@check("scheduler")
def shape_is_of_the_request_alone(case: Case) -> None:
    """The shape is hashable, and the same for another pod with the same request."""
    stage = SchedulerStage(case).told()
    if not stage.has_shape:
        return
    for pod in case.subject.pods:
        request = stage.framework.requests(pod)
        first = stage.shape(request)
        other = stage.shape(replace(request, pod=examples.like(pod, 1).ref))
        hold(first == other, f"partage_shape gives {first!r:.80} and {other!r:.80} to two pods that ask for the same")


@check("scheduler")
def equal_shapes_get_equal_answers(case: Case) -> None:
    """Requests of one shape always fit on the same nodes with the same scores: the core computes them once."""
    stage = SchedulerStage(case).told()
    requests = [stage.framework.requests(pod) for pod in (*case.subject.pods, *_larger_pods(stage))]
    for _ in _steps_of_filling(stage):
        known: dict[object, Answers] = {}
        for request in requests:
            verdicts, fitting = stage.verdicts(request), stage.fitting(request)
            answers = Answers(verdicts, stage.scores(request, fitting))
            first = known.setdefault(stage.shape(request), answers)
            differing = first.difference(answers)
            hold(not differing, f"partage_shape is equal for two requests whose {differing} differ")


def _larger_pods(stage: SchedulerStage) -> Iterator[Pod]:
    """The subject's pods with larger requests, if these can be read."""
    for pod in stage.subject.pods:
        for factor in _FACTORS:
            containers = tuple(
                replace(container, limits={key: _times(text, factor) for key, text in container.limits.items()})
                for container in pod.containers
            )
            larger = replace(pod, containers=containers)
            try:
                stage.framework.requests(larger)
            except (Refused, DecodeError):
                continue
            yield larger


def _times(text: str, factor: int) -> str:
    return str(int(text) * factor) if re.fullmatch("[0-9]{1,18}", text) else text


def _steps_of_filling(stage: SchedulerStage) -> Iterator[None]:
    """Yields after each pod that is taken, until nothing fits any more."""
    yield
    if stage.subject.kind is not None:
        for _ in stage.filled(stage.subject.pods, _FILLING):
            yield


@check("scheduler")
def answers_stay_as_given(case: Case) -> None:
    """A result is not modified by later calls: the core keeps it, so no array may be reused."""
    stage = SchedulerStage(case).told()
    pods = (*case.subject.pods, *strangers())
    for request in map(stage.framework.requests, pods):
        verdict = stage.framework.fits(request, stage.slots)
        fitting = read_only(stage.fitting(request))
        scores = stage.framework.scores(request, fitting)
        before = spelt_out(verdict), scores.tolist()
        for other in map(stage.framework.requests, pods):
            stage.scores(other, stage.fitting(other))
        hold(spelt_out(verdict) == before[0], "partage_fits changes an answer that it gave before")
        hold(scores.tolist() == before[1], "partage_scores changes an answer that it gave before")


@check("scheduler")
def changes_no_input(case: Case) -> None:
    """Pods, requests, inventories, arrays of nodes and allocations are shared: it modifies none of them."""
    stage = SchedulerStage(case)
    for number, inventory in enumerate(stage.inventories):
        with unchanged("partage_node_added", "the inventory", inventory):
            stage.node_added(Slot(number), inventory)
    for pod in case.subject.pods:
        with unchanged("partage_requests", "the pod", pod):
            request = stage.framework.requests(pod)
        _check_asking_changes_nothing(stage, request)
        if case.subject.kind is not None:
            _check_counting_changes_nothing(stage, request)


def _check_asking_changes_nothing(stage: SchedulerStage, request: PodRequest) -> None:
    slots = stage.slots
    with unchanged("partage_shape", "the request", request):
        stage.shape(request)
    with unchanged("partage_fits", "the request", request), unchanged("partage_fits", "the slots", slots.tobytes()):
        stage.framework.fits(request, slots)
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
