"""Looks at the whole cluster once, as the scheduler does, and at one pod in it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct
from msgspec.structs import replace

from partage_base.keyring import LoadedKeys
from partage_base.kube import ApiServer, NotFound, pod_path
from partage_cli.keys.objects import KEYS
from partage_cli.schedulers import told, trusted_keys
from partage_plugins.errors import Refused
from partage_plugins.registry.registry import Registry
from partage_plugins.vocabulary import Allocation
from partage_plugins.vocabulary.names import KeyId
from partage_scheduler.core import Core, new_core
from partage_scheduler.dry_run import look
from partage_scheduler.explanation import PodReport, stand
from partage_scheduler.objects import ApiPod
from partage_scheduler.signatures import Trust, as_written


class Answer(Struct, frozen=True, kw_only=True):
    pod: PodReport
    verified: bool
    """Whether every allocation that counts was verified; without keys they are taken as they are written."""
    notes: tuple[str, ...] = ()
    """What this rests on that is not known for sure, a line each."""


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
    name, is_claiming = pod.spec.scheduler_name, bool(pod.spec.resource_claims)
    scheduler = await told(server, question.partage, name)
    by_others = name != scheduler.said.scheduler_name and (scheduler.said.extends or is_claiming)
    settings = scheduler.settings(question.root, question.partage)
    if by_others or (is_claiming and pod.node):  # whoever allocates claims, they are counted as ours would
        settings = replace(settings, scheduler_name=name, claims=is_claiming)
    keys = await trusted_keys(server, question.partage, question.root)
    with scheduler.plugins() as registry:
        reader = _Reader(registry, keys)
        core = new_core(settings, registry, trusted=reader.allocation)
        await look(server, core, namespace=question.partage, claims=settings.claims)
        report = _report(core, pod, settings.scheduler_name)
    notes = [*scheduler.notes]
    if by_others and report.state in {"waits", "fits"}:
        notes.append(f"{name} places it, and not partage: this is how partage counts the cards for it")
    if reader.has_unchecked:
        where = f"in ConfigMap {question.partage}/{KEYS} nor in {settings.below_root(settings.keys)}"
        notes.append(f"allocations were taken as they are written: there is no public key {where}")
    return Answer(pod=report, verified=not reader.has_unchecked, notes=tuple(notes))


class _Reader:
    """Reads allocations on pods; without keys as they are written."""

    def __init__(self, registry: Registry, keys: Mapping[KeyId, Ed25519PublicKey]) -> None:
        self._written = as_written(registry.kinds)
        self._trust = Trust(lambda: LoadedKeys(keys), registry.kinds) if keys else None
        self.has_unchecked = False

    def allocation(self, pod: ApiPod) -> Allocation | None:
        if self._trust is not None:
            return self._trust.trusted(pod)
        found = self._written(pod)
        self.has_unchecked |= found is not None
        return found


def _report(core: Core, pod: ApiPod, ours: str) -> PodReport:
    return stand(
        core.preemption.finder,
        pod,
        time.monotonic(),
        lacking=lambda each: core.queue.lacking(each.uid),
        flagged=core.cluster.flagged,
        ours=ours,
    )


async def _pod(server: ApiServer, question: Question) -> ApiPod:
    try:
        return await server.get(pod_path(question.namespace, question.name), ApiPod)
    except NotFound:
        raise Refused(f"there is no pod {question.name} in namespace {question.namespace}") from None
