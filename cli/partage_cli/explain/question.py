"""Looks at the whole cluster once, as the scheduler does, and at one pod in it."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct

from partage_base.keyring import load_public_keys
from partage_base.kube import ApiServer, NotFound, pod_path
from partage_plugins.errors import Refused
from partage_plugins.registry.registry import Registry
from partage_scheduler.core import Core, new_core, plugins
from partage_scheduler.dry_run import look
from partage_scheduler.explanation import PodReport, stand
from partage_scheduler.objects import ApiPod
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.signatures import as_written


class Answer(Struct, frozen=True, kw_only=True):
    pod: PodReport
    verified: bool
    """Whether signatures of allocations were checked; without keys they are taken as they are written."""


class Question(Struct, frozen=True, kw_only=True):
    """About whom, and how it is looked at."""

    namespace: str
    name: str
    partage: str
    """The namespace of partage."""
    root: Path


async def answer(server: ApiServer, question: Question) -> Answer:
    """Raises `KubeError`, and `Refused` where there is no such pod or what it asks for is written wrongly."""
    pod = await _pod(server, question)
    settings = SchedulerSettings(
        root=question.root,
        namespace=question.partage,
        scheduler_name=_scheduler(pod),
        claims=bool(pod.spec.resource_claims),  # whoever allocates them, they are counted as ours would
    )
    verified = bool(load_public_keys(settings.below_root(settings.keys)).keys)
    core = _mind(settings, plugins(), verified=verified)
    await look(server, core, namespace=question.partage, claims=settings.claims)
    cluster, queue = core.cluster, core.queue
    stands = stand(
        core.preemption.finder,
        pod,
        time.monotonic(),
        lacking=lambda each: queue.lacking(each.uid),
        flagged=cluster.flagged,
    )
    return Answer(pod=stands, verified=verified)


def _mind(settings: SchedulerSettings, registry: Registry, *, verified: bool) -> Core:
    return new_core(settings, registry, trusted=None if verified else as_written(registry.kinds))


async def _pod(server: ApiServer, question: Question) -> ApiPod:
    try:
        return await server.get(pod_path(question.namespace, question.name), ApiPod)
    except NotFound:
        raise Refused(f"there is no pod {question.name} in namespace {question.namespace}") from None


def _scheduler(pod: ApiPod) -> str:
    """It is explained as our scheduler would place it."""
    return pod.spec.scheduler_name or "default-scheduler"
