"""Checks of a scheduler plugin: loading, its declarations, and how it reads pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from partage_plugins.api.pods import Pod, PodRequest
from partage_plugins.errors import DecodeError, Refused
from partage_plugins.testing import examples
from partage_plugins.testing.check import Broken, Case, check, has_frozen_types, hold, owns_what_it_should
from partage_plugins.testing.leftovers import no_process_is_left
from partage_plugins.testing.neighbours import NEIGHBOUR, RESOURCE
from partage_plugins.testing.scheduler_stage import SchedulerStage

_GARBAGE: Final = ("NaN", "-1", "1e999", "", "1" + "0" * 30, "\ud800", "9" * (1 << 20), "a" * (1 << 20))


def strangers() -> tuple[Pod, ...]:
    """Pods that request nothing of the subject's kind."""
    return (
        examples.pod(name="plain"),
        examples.pod({"cpu": "1", "memory": "1Gi"}, annotations={"example.com/note": "1"}, name="ordinary"),
        examples.pod({RESOURCE: "1"}, {"cpu": "500m"}, name="neighbours"),
    )


@check("scheduler")
def loads(case: Case) -> None:
    """It is imported, made and registered without a fault; all its hooks exist, are marked and take known arguments."""
    owns_what_it_should(SchedulerStage(case).registry, case.subject)


@check("scheduler")
def reads_its_pods(case: Case) -> None:
    """It reads requests from the subject's pods that are valid by its own types, and the same every time."""
    stage = SchedulerStage(case)
    for pod in case.subject.pods:
        request = stage.framework.requests(pod)
        expected = case.subject.kind or "anything"
        asks = bool(request.kinds) if case.subject.kind is None else case.subject.kind in request.kinds
        hold(asks, f"partage_requests reads pod {pod.ref.name} as asking for {sorted(request.kinds)}, not {expected}")
        hold(stage.framework.requests(pod) == request, f"partage_requests reads pod {pod.ref.name} differently twice")
        _check_valid(stage, request)


@check("scheduler")
def leaves_other_pods_alone(case: Case) -> None:
    """It neither refuses pods that do not request its kind, nor reads a request from them."""
    stage = SchedulerStage(case)
    for pod in strangers():
        try:
            kinds = stage.framework.requests(pod).kinds - {NEIGHBOUR.name}
        except (Refused, DecodeError) as error:
            raise Broken(f"partage_requests refuses a pod that does not ask for its kind: {error}") from error
        hold(not kinds, f"partage_requests reads {sorted(kinds)} from a pod that asks for nothing of the kind")


@check("scheduler")
def refuses_garbage_in_words(case: Case) -> None:
    """For any values of the keys that it reads, it refuses the pod with a sentence or returns a valid request."""
    stage = SchedulerStage(case)
    for where, pod in _spoilt_pods(case.subject.pods):
        try:
            request = stage.framework.requests(pod)
        except (Refused, DecodeError):
            continue
        try:
            _check_valid(stage, request)
        except Broken as broken:
            raise Broken(f"of {where}, {broken}") from broken


@check("scheduler", "kind")
def declares_its_kind(case: Case) -> None:
    """Its three types are frozen, its requests can be compared and hashed, and it always declares the same kind."""
    kind = SchedulerStage(case).kind
    has_frozen_types(kind)
    config = kind.request.__struct_config__
    hold(config.eq and kind.request.__hash__ is not None, f"{kind.request.__name__} cannot be compared and hashed")
    hold(SchedulerStage(case).kind == kind, "partage_kind returns another kind the second time")


@check("scheduler")
def starts_no_process(case: Case) -> None:
    """It starts no process: hooks of the scheduler do no work outside of their thread."""
    stage = SchedulerStage(case).told()
    for pod in case.subject.pods:
        stage.answers(stage.framework.requests(pod))
        if case.subject.kind is not None and (placed := stage.placed(pod)) is not None:
            stage.give_back(*placed)
    no_process_is_left()


def _check_valid(stage: SchedulerStage, request: PodRequest) -> None:
    for container in request.containers:
        for name, ask in container.asks:
            kind = stage.registry.kind(name)
            if kind is None:
                continue
            try:
                read = msgspec.json.decode(msgspec.json.encode(ask), type=kind.request)
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise Broken(f"partage_requests made {ask!r:.200}, which is not valid: {error}") from None
            hold(read == ask, f"partage_requests made {ask!r:.200}, which is not of the declared types")


def _spoilt_pods(pods: tuple[Pod, ...]) -> Iterator[tuple[str, Pod]]:
    """Each pod with each of its values replaced by each invalid value."""
    for pod in pods:
        for key, spoilt_annotations in _spoilt(pod.annotations):
            yield f"annotation {key}", replace(pod, annotations=spoilt_annotations)
        for place, container in enumerate(pod.containers):
            for field in ("limits", "requests"):
                for key, amounts in _spoilt(getattr(container, field)):
                    spoilt = replace(container, **{field: amounts})
                    containers = (*pod.containers[:place], spoilt, *pod.containers[place + 1 :])
                    yield f"{field} {key}", replace(pod, containers=containers)


def _spoilt(values: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    for key in values:
        for garbage in _GARBAGE:
            yield f"{key} = {garbage!r:.40}", {**values, key: garbage}
