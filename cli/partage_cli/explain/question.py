"""Reads the whole cluster once, as the scheduler does, and reports on one pod in it."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from partage_base.kube import ApiServer, NotFound, pod_path
from partage_cli.cluster_view import looking
from partage_cli.schedulers import told
from partage_plugins.errors import PartageError, Refused
from partage_scheduler.core import Core
from partage_scheduler.explanation import PodReport, stand
from partage_scheduler.objects import ApiPod, seen


class Answer(Struct, frozen=True, kw_only=True):
    pod: PodReport
    verified: bool
    """Whether every counted allocation was verified; without keys they are taken unverified."""
    unread: str = ""
    """A sentence for the pod's owner about its keys for cards that no dialect reads."""
    notes: tuple[str, ...] = ()
    """What the answer depends on and is uncertain, one line each."""


class Question(Struct, frozen=True, kw_only=True):
    """The pod, and where to find partage."""

    namespace: str
    name: str
    partage: str
    """The namespace of partage."""
    root: Path


async def answer(server: ApiServer, question: Question) -> Answer:
    """Raises `KubeError`, and `Refused` if the pod does not exist."""
    pod = await _pod(server, question)
    name, is_claiming = pod.spec.scheduler_name, bool(pod.spec.resource_claims)
    scheduler = await told(server, question.partage, name)
    by_others = name != scheduler.said.scheduler_name and (scheduler.said.extends or is_claiming)
    settings = scheduler.settings(question.root, question.partage)
    if by_others or (is_claiming and pod.node):  # claims count as with our scheduler
        settings = replace(settings, scheduler_name=name, claims=is_claiming)
    async with looking(server, scheduler, settings, question.root) as looked:
        report = _report(looked.core, pod, settings.scheduler_name)
        unread = unread_of(looked.core, pod, report)
    notes = [*scheduler.notes]
    if by_others and report.state in {"waits", "fits"}:
        notes.append(f"{name} places it, and not partage: this is how partage counts the cards for it")
    notes += [looked.unchecked] if looked.unchecked else []
    return Answer(pod=report, verified=not looked.unchecked, unread=unread, notes=tuple(notes))


def _report(core: Core, pod: ApiPod, ours: str) -> PodReport:
    return stand(
        core.preemption.finder,
        pod,
        time.monotonic(),
        lacking=lambda each: core.queue.lacking(each.uid),
        flagged=core.cluster.verified.flagged,
        ours=ours,
    )


def unread_of(core: Core, pod: ApiPod, report: PodReport) -> str:
    """The sentence of the scheduler's Event; empty if all keys are read, or the error is reported already."""
    try:
        asks = bool(report.given or core.cycle.request(pod).containers)
    except PartageError:
        return ""
    absent = () if pod.node else core.cycle.predicates.absent(pod)
    return core.lexicon.in_vain(seen(pod), asks=asks, absent=absent) or ""


async def _pod(server: ApiServer, question: Question) -> ApiPod:
    try:
        return await server.get(pod_path(question.namespace, question.name), ApiPod)
    except NotFound:
        raise Refused(f"there is no pod {question.name} in namespace {question.namespace}") from None
