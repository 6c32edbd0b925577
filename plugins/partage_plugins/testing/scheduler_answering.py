"""Checks of a scheduler plugin: what it says about nodes, one or thousands, and that saying it changes nothing."""

from __future__ import annotations

import math
from itertools import cycle, islice
from typing import Final

from partage_plugins.testing.checking import Case, Check, hold
from partage_plugins.testing.neighbours import NEIGHBOUR, NeighbourPart
from partage_plugins.testing.scheduler_reading import strangers
from partage_plugins.testing.scheduler_stage import BARE, SchedulerStage, read_only
from partage_plugins.vocabulary.inventory import Inventory

_MANY: Final = 5000
_ONE_BY_ONE: Final = 16


def fits_somewhere(case: Case) -> None:
    """Each pod of the subject fits on one of its inventories; where one does not fit, the reason is in words."""
    stage = SchedulerStage(case).told()
    for pod in case.subject.pods:
        verdict = stage.side.fits(stage.side.requests(pod), stage.slots)
        hold(verdict.fits.any(), f"partage_fits says that pod {pod.ref.name} fits on no inventory of the subject")
        _, reasons = verdict.reasons()
        in_words = all(str(reason).strip() for reason in reasons)
        hold(in_words, f"partage_fits gives {reasons!r:.200} as reasons")


def scores_are_finite(case: Case) -> None:
    """Where a pod fits, its score is a finite number."""
    stage = SchedulerStage(case).told()
    for pod in case.subject.pods:
        request = stage.side.requests(pod)
        scores = stage.scores(request, stage.fitting(request))
        hold(all(map(math.isfinite, scores)), f"partage_scores gives {scores}")


def answers_the_same_twice(case: Case) -> None:
    """Fits and scores change no state: asked again, they are the same."""
    stage = SchedulerStage(case).told()
    for request in map(stage.side.requests, case.subject.pods):
        fitting = stage.fitting(request)
        hold(stage.verdicts(request) == stage.verdicts(request), "partage_fits answers differently the second time")
        same = stage.scores(request, fitting) == stage.scores(request, fitting)
        hold(same, "partage_scores answers differently the second time")


def answers_for_any_number_of_nodes(case: Case) -> None:
    """None, one and 5,000 nodes are answered for in one call each."""
    stage = SchedulerStage(case).told(list(islice(cycle(_inventories(case)), _MANY)))
    for request in map(stage.side.requests, case.subject.pods):
        for number in (0, 1, _MANY):
            slots = stage.slots[:number]
            hold(len(stage.verdicts(request, slots)) == number, f"partage_fits fails for {number} nodes")
            hold(len(stage.scores(request, slots[:0])) == 0, "partage_scores fails for no node")
        stage.scores(request, stage.fitting(request))


def answers_for_each_node_alone(case: Case) -> None:
    """What it says about a node does not depend on the other nodes in the call, nor on their order."""
    stage = SchedulerStage(case).told(_inventories(case) * 2)
    for request in map(stage.side.requests, case.subject.pods):
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


def fits_nowhere_without_its_kind(case: Case) -> None:
    """A node that has nothing of its kind takes no pod that asks for it."""
    stage = SchedulerStage(case).told((BARE, _NEIGHBOURS))
    for request in map(stage.side.requests, case.subject.pods):
        hold(all(stage.verdicts(request)), "partage_fits says yes for a node that has nothing of its kind")


def fits_everywhere_for_other_pods(case: Case) -> None:
    """A pod that does not ask for its kind is none of its business: it fits on every node."""
    stage = SchedulerStage(case).told((*_inventories(case), BARE))
    for pod in strangers():
        request = stage.side.requests(pod)
        reasons = list(filter(None, stage.verdicts(request)))
        hold(not reasons, f"partage_fits says no to a pod that does not ask for its kind: {reasons[:1]}")
        stage.scores(request, stage.slots.tolist())
        stage.shape(request)


_NEIGHBOURS: Final = Inventory(kinds={NEIGHBOUR.name: NeighbourPart(("n0",))})


def _inventories(case: Case) -> tuple[Inventory, ...]:
    return SchedulerStage(case).inventories


CHECKS: Final[tuple[Check, ...]] = (
    fits_somewhere,
    scores_are_finite,
    answers_the_same_twice,
    answers_for_any_number_of_nodes,
    answers_for_each_node_alone,
)
OWNER_CHECKS: Final[tuple[Check, ...]] = (fits_nowhere_without_its_kind, fits_everywhere_for_other_pods)
