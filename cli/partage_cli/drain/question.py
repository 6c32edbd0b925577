"""Reads the cluster once, removes one node's pods with cards, and places them again with the scheduler's own code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from partage_base.kube import NOT_ENDED, ApiServer, pods_path
from partage_cli.cluster_view import looking
from partage_cli.drain.eviction import NodePod
from partage_cli.schedulers import told
from partage_plugins.api import NodeName, PodUid
from partage_plugins.errors import Refused
from partage_scheduler.core import Core
from partage_scheduler.cycle import Bind, ScheduleResult, lacks
from partage_scheduler.dry_run import verdicts
from partage_scheduler.explanation import GivenCard, stand
from partage_scheduler.objects import ApiPod, gang_of

State = Literal["fits", "does not fit", "not known", "stays", "leaves already"]
_Fate: TypeAlias = tuple[State, str, str]
"""The state, the replacement's node, and the reason why there is none or why the pod stays."""
_PAGE: Final = 1000
_BY_CLAIMS: Final = "its cards come by claims, which are allocated only once the pod that follows it is there"


class Leaver(Struct, frozen=True, kw_only=True):
    """A pod with cards on the node, and the outcome for it."""

    pod: str
    """namespace/name."""
    owner: str
    """Such as Deployment/web; empty if no controller recreates it."""
    cards: tuple[GivenCard, ...]
    state: State
    goes_to: str = ""
    """The node that the replacement would be bound to now."""
    message: str = ""
    """Why it fits nowhere, or stays."""


class Drained(Struct, frozen=True, kw_only=True):
    node: str
    pods: tuple[Leaver, ...]
    notes: tuple[str, ...] = ()
    """What the result depends on and is uncertain, one line each."""

    @property
    def all_fit(self) -> bool:
        return not any(each.state in {"does not fit", "not known"} for each in self.pods)


async def drained(server: ApiServer, *, node: str, namespace: str, root: Path) -> Drained:
    """Raises `KubeError`, and `Refused` if the node does not exist."""
    scheduler = await told(server, namespace)
    settings = scheduler.settings(root, namespace)
    async with looking(server, scheduler, settings, root) as seen:
        if all(each.name != node for each in seen.core.cluster.fleet.nodes):
            raise Refused(f"there is no node {node}; `kubectl get nodes` has their names")
        listed = await server.list(pods_path(), NodePod, fields=f"spec.nodeName={node},{NOT_ENDED}", limit=_PAGE)
        written = {each.metadata.uid: each for each in listed.items}
        pods = tuple(_emptied(seen.core, NodeName(node), written, settings.scheduler_name))
    unread = (f"pod {'/'.join(each.key)} can't be read, and is left out: {each.why}" for each in listed.undecodable)
    return Drained(node=node, pods=pods, notes=(*scheduler.notes, *filter(None, (seen.unchecked,)), *unread))


def _emptied(core: Core, node: NodeName, written: Mapping[str, NodePod], ours: str) -> Iterator[Leaver]:
    """All leaving pods are removed before the first is placed again, because `kubectl drain` evicts them together."""
    holders = list(_holders(core, node, written))
    followers = {each.pod.uid: each.written.successor(ours) for each in holders if each.is_placed_again}
    _cordon(core, node)
    for each in holders:
        if not each.written.why_stays:
            core.event_handlers.pods.gone(each.pod)
    for pod in followers.values():
        core.event_handlers.pods.changed(pod)
    decided = {verdict.pod.uid: verdict for verdict in verdicts(core)}
    for each in holders:
        follower = followers.get(each.pod.uid)
        state, goes_to, message = each.stays if follower is None else _placed(core, follower, decided)
        yield Leaver(
            pod=f"{each.pod.namespace}/{each.pod.name}",
            owner=each.written.owner,
            cards=each.cards,
            state=state,
            goes_to=goes_to,
            message=message,
        )


class _Holder(NamedTuple):
    pod: ApiPod
    cards: tuple[GivenCard, ...]
    written: NodePod

    @property
    def is_placed_again(self) -> bool:
        return not (self.pod.is_going or self.written.why_stays or self.written.spec.resource_claims)

    @property
    def stays(self) -> _Fate:
        """The outcome of a pod that is not placed again here."""
        if self.written.why_stays:
            return "stays", "", self.written.why_stays
        if self.pod.is_going:
            return "leaves already", "", ""
        return "not known", "", _BY_CLAIMS


def _holders(core: Core, node: NodeName, written: Mapping[str, NodePod]) -> Iterator[_Holder]:
    """Pods with cards on the node, by name; skips a pod that was deleted between the two lists."""
    pods = (placed.pod for placed in core.cluster.placed_pods.on(node))
    for pod in sorted(pods, key=lambda each: (each.namespace, each.name)):
        report = stand(
            core.preemption.finder,
            pod,
            time.monotonic(),
            lacking=lambda each: core.queue.lacking(each.uid),
            flagged=core.cluster.verified.flagged,
        )
        if report.given and pod.uid in written:
            yield _Holder(pod, report.given, written[pod.uid])


def _cordon(core: Core, node: NodeName) -> None:
    (found,) = (each for each in core.cluster.fleet.nodes if each.name == node)
    unversioned = replace(found.metadata, resource_version="")  # so that the change is not ignored as already known
    core.event_handlers.nodes.changed(
        replace(found, metadata=unversioned, spec=replace(found.spec, unschedulable=True))
    )


def _placed(core: Core, pod: ApiPod, decided: Mapping[PodUid, ScheduleResult]) -> _Fate:
    verdict = decided.get(pod.uid)
    if isinstance(verdict, Bind):
        return "fits", verdict.decision.node, ""
    if verdict is not None:
        return "does not fit", "", verdict.message
    gang = gang_of(pod)
    if gang is None:
        raise AssertionError(f"pod {pod.namespace}/{pod.name} was handed to the queue and never decided on")
    return "does not fit", "", lacks(gang.name, core.queue.lacking(pod.uid), gang.size)
