"""Checks of a scheduler plugin's shapes: the core asks once for each shape, so they decide what is asked at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

from msgspec.structs import replace

from partage_plugins.errors import DecodeError, Refused
from partage_plugins.testing import examples
from partage_plugins.testing.checking import Case, Check, hold
from partage_plugins.testing.scheduler_stage import Answers, SchedulerStage
from partage_plugins.vocabulary.pods import Pod

_FACTORS: Final = (2, 3, 16)
_FILLING: Final = 64


def shape_is_of_the_request_alone(case: Case) -> None:
    """The shape can be hashed and is the same for another pod that asks for the same."""
    stage = SchedulerStage(case).told()
    if not stage.has_shape:
        return
    for pod in case.subject.pods:
        first = stage.shape(stage.side.requests(pod))
        other = stage.shape(stage.side.requests(examples.like(pod, 1)))
        hold(first == other, f"partage_shape gives {first!r:.80} and {other!r:.80} to two pods that ask for the same")


def equal_shapes_get_equal_answers(case: Case) -> None:
    """Requests of one shape fit on the same nodes with the same scores, whatever is taken: the core asks only once."""
    stage = SchedulerStage(case).told()
    requests = [stage.side.requests(pod) for pod in (*case.subject.pods, *_larger_pods(stage))]
    for _ in _steps_of_filling(stage):
        known: dict[object, Answers] = {}
        for request in requests:
            verdicts, fitting = stage.verdicts(request), stage.fitting(request)
            answers = Answers(verdicts, stage.scores(request, fitting))
            first = known.setdefault(stage.shape(request), answers)
            differing = first.difference(answers)
            hold(not differing, f"partage_shape is equal for two requests whose {differing} differ")


def _larger_pods(stage: SchedulerStage) -> Iterator[Pod]:
    """The subject's pods, asking for more of everything where that can be read."""
    for pod in stage.subject.pods:
        for factor in _FACTORS:
            containers = tuple(
                replace(container, limits={key: _times(text, factor) for key, text in container.limits.items()})
                for container in pod.containers
            )
            larger = replace(pod, containers=containers)
            try:
                stage.side.requests(larger)
            except (Refused, DecodeError):
                continue
            yield larger


def _times(text: str, factor: int) -> str:
    return str(int(text) * factor) if re.fullmatch("[0-9]{1,18}", text) else text


def _steps_of_filling(stage: SchedulerStage) -> Iterator[None]:
    """Stops after each pod that is taken, until nothing fits any more."""
    yield
    if stage.subject.kind is None:
        return
    for number, pod in enumerate(islice(cycle(stage.subject.pods), _FILLING)):
        if stage.placed(examples.like(pod, number)) is None:
            return
        yield


CHECKS: Final[tuple[Check, ...]] = (shape_is_of_the_request_alone, equal_shapes_get_equal_answers)
