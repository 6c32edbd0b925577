"""Usage from the allocations of existing pods, from their binding until they ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_base.kube import ApiServer, pods_path
from partage_cli.nodes.reports import moment
from partage_cli.schedulers import trusted_keys
from partage_cli.tables import few
from partage_cli.usage.report import GIB, HOUR_S, HeldTime, UsageReport
from partage_plugins.api import GPU, Allocation
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.api.names import KeyId
from partage_plugins.api.usage import usages
from partage_plugins.codecs import decode_allocation, verify
from partage_plugins.errors import PartageError, Refused

Keys = Mapping[KeyId, Ed25519PublicKey]
_AT_A_TIME: Final = 500
_ENDED: Final = frozenset(("Succeeded", "Failed"))
_GONE: Final = "pods that are no longer there are not counted; --prometheus has them"


class _Terminated(msgspec.Struct, frozen=True, rename="camel"):
    finished_at: str | None = None


class _State(msgspec.Struct, frozen=True):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, frozen=True):
    state: _State = _State()


class _PodCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    start_time: str | None = None
    conditions: tuple[_PodCondition, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    resource_claims: tuple[msgspec.Raw, ...] = ()


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: Mapping[str, str] = {}


class PodLife(msgspec.Struct, frozen=True):
    """A pod with the fields that tell what it held, and when."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def began(self) -> datetime | None:
        """When it was bound, or else when its node accepted it."""
        bound = [each for each in self.status.conditions if (each.type, each.status) == ("PodScheduled", "True")]
        times = [each.last_transition_time for each in bound]
        return next(filter(None, (moment(text or "") for text in (*times, self.status.start_time))), None)

    @property
    def has_ended(self) -> bool:
        return self.status.phase in _ENDED

    @property
    def ended(self) -> datetime | None:
        """The end of its last container; None if the status does not have it."""
        ends = [each.state.terminated for each in self.status.container_statuses]
        return max(filter(None, (moment(each.finished_at or "") for each in ends if each)), default=None)


class Window(NamedTuple):
    since: datetime
    until: datetime

    def hours(self, began: datetime, ended: datetime) -> float:
        return max(0.0, (min(ended, self.until) - max(began, self.since)).total_seconds() / HOUR_S)


async def by_allocations(
    server: ApiServer, window: Window, *, of_namespace: str, namespace: str, root: Path
) -> UsageReport:
    """Usage of a namespace, or of all if it is empty; raises `KubeError`."""
    keys = await trusted_keys(server, namespace, root)
    pods = await server.list(pods_path(of_namespace), PodLife, limit=_AT_A_TIME)
    return counted(pods.items, window, keys, unread=[f"{each.key[0]}/{each.key[1]}" for each in pods.undecodable])


def counted(pods: Iterable[PodLife], window: Window, keys: Keys, *, unread: Iterable[str] = ()) -> UsageReport:
    """Count pods with valid allocations; the others are named in notes."""
    found: list[HeldTime] = []
    doubtful, timeless, resized, claiming = [*unread], list[str](), list[str](), list[str]()
    for pod in pods:
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if pod.spec.resource_claims:
            claiming.append(name)
        try:
            allocation = _allocation(pod, keys)
        except PartageError:
            doubtful.append(name)
            continue
        if allocation is None:
            continue
        ended = pod.ended if pod.has_ended else window.until
        if pod.began is None or ended is None:
            timeless.append(name)
        elif hours := window.hours(pod.began, ended):
            found.append(_held(pod, allocation, hours))
            resized += [name] if allocation.gen > 1 else []
    notes = [_GONE, *_notes(doubtful, timeless, resized, claiming)]
    if not keys:
        notes.append("allocations were taken as they are written: there is no public key to verify them")
    return UsageReport(
        source="allocations", since=window.since, until=window.until, pods=tuple(found), notes=tuple(notes)
    )


def _notes(doubtful: list[str], timeless: list[str], resized: list[str], claiming: list[str]) -> Iterator[str]:
    for names, words in (
        (doubtful, "not counted, since what they were given can't be believed"),
        (timeless, "not counted, since they do not say from when to when"),
        (resized, "were resized, and count as if they had had their present amounts all the while"),
        (claiming, "have claims, and what they hold by those is not counted"),
    ):
        if names:
            yield f"{few(names)}: {words}"


def _allocation(pod: PodLife, keys: Keys) -> Allocation | None:
    """The allocation, verified as by the scheduler; raises `PartageError` if it is invalid."""
    text = pod.metadata.annotations.get(ALLOCATION)
    if text is None or not pod.spec.node_name:
        return None
    if keys:
        verify(text, pod.metadata.annotations.get(SIGNATURE, ""), keys)
    found = decode_allocation(text, (GPU,))
    if (found.pod, found.node) != (pod.metadata.uid, pod.spec.node_name):
        raise Refused(f"the allocation is that of pod {found.pod} on node {found.node}")
    return found


def _held(pod: PodLife, allocation: Allocation, hours: float) -> HeldTime:
    cards = list(usages(allocation))
    return HeldTime(
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        milli_hours=hours * sum(each.share_milli for each in cards),
        gib_hours=hours * sum(each.memory_bytes for each in cards) / GIB,
    )
