"""The fields of pods that the page reads; only what is shown is kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct, field

from partage_cli.tables import amount, printable
from partage_plugins.api import GPU, Allocation
from partage_plugins.api.keys import ALLOCATION, PREFIX, RESIZED
from partage_plugins.api.names import ContainerName, Namespace, PodName, PodUid
from partage_plugins.api.pods import Pod, PodContainer, PodRef
from partage_plugins.api.usage import Usage, usages
from partage_plugins.codecs import decode_allocation
from partage_plugins.codecs.native import read_requests
from partage_plugins.codecs.resize import WAITS
from partage_plugins.errors import PartageError
from partage_ui.workload import Workload, promised

ADVERTISER: Final = "partage-advertiser"
LONGEST_WHY: Final = 2048
_LONGEST_ASK: Final = 120
_MOST_ASKS: Final = 4


class _Read(Struct, frozen=True, rename="camel"):
    """Fields are spelt as in Kubernetes; unknown ones are ignored."""


class PodNotes(Struct, frozen=True):
    allocation: str = field(name=ALLOCATION, default="")


class PodLabels(Struct, frozen=True):
    app: str = field(name="app.kubernetes.io/name", default="")


class PodMeta(_Read, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: PodLabels = PodLabels()
    annotations: PodNotes = PodNotes()


class Amounts(_Read, frozen=True):
    limits: Mapping[str, str] = {}


class PodPart(_Read, frozen=True):
    """A container of the specification, or a scheduling gate."""

    name: str = ""
    resources: Amounts = Amounts()


class PodSpec(_Read, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[PodPart, ...] = ()
    containers: tuple[PodPart, ...] = ()


class PodCondition(_Read, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(_Read, frozen=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()


class SeenPod(_Read, frozen=True):
    """A pod as the API server has it."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_advertiser(self) -> bool:
        """Whether it can be queried for its node's broker."""
        is_there = self.status.phase == "Running" and not self.metadata.deletion_timestamp
        return self.metadata.labels.app == ADVERTISER and is_there and bool(self.spec.node_name)


class Needs(NamedTuple):
    """Needs for one card, of the container that requests most."""

    cards: int
    share_milli: int
    memory_bytes: int | None


class PodFact(Struct, frozen=True, kw_only=True):
    """A pod that waits for cards, or has some."""

    namespace: str
    name: str
    uid: str
    node: str = ""
    since: datetime | None = None
    """When it started to wait, or was created."""
    asks: str = ""
    """The request as text, for a pod that waits."""
    needs: Needs | None = None
    """None if it does not request in the native dialect."""
    why: str = ""
    """Why it waits; empty if it does not."""
    allocation: Allocation | None = None
    usages: tuple[Usage, ...] = ()
    """What the allocation takes of each card."""
    workloads: tuple[Workload, ...] = ()
    """What the allocation gives each container, or each budget."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def fact_of(pod: SeenPod, scheduler: str) -> PodFact | None:
    """None for a pod unrelated to cards: no request under our prefix, no allocation, and another scheduler."""
    meta, spec = pod.metadata, pod.spec
    allocation = _allocation(meta.annotations.allocation) if spec.node_name else None
    is_ours = spec.scheduler_name == scheduler or any(_asks(each) for each in spec.containers)
    if allocation is None and (spec.node_name or not is_ours):
        return None
    ref = PodRef(namespace=Namespace(meta.namespace), name=PodName(meta.name), uid=PodUid(meta.uid))
    workloads = () if allocation is None else tuple(promised(ref, spec.node_name, allocation))
    resize = _condition(pod, RESIZED)
    waits_to_grow = resize if resize is not None and resize.reason == WAITS else None
    if spec.node_name and waits_to_grow is None:
        return PodFact(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            node=spec.node_name,
            allocation=allocation,
            usages=used_by(allocation),
            workloads=workloads,
        )
    if meta.deletion_timestamp and not spec.node_name:
        return None
    condition = waits_to_grow or _condition(pod, "PodScheduled")
    return PodFact(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=spec.node_name,
        since=moment((condition and condition.last_transition_time) or meta.creation_timestamp),
        asks=_asked(spec.containers),
        needs=needs_of(spec.containers),
        why=_why(pod, condition, scheduler),
        allocation=allocation,
        usages=used_by(allocation),
        workloads=workloads,
    )


def used_by(allocation: Allocation | None) -> tuple[Usage, ...]:
    return () if allocation is None else tuple(usages(allocation))


def moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None


def needs_of(containers: Iterable[PodPart]) -> Needs | None:
    """For one card; only for pods in the native dialect, without their policies."""
    parts = tuple(PodContainer(name=ContainerName(each.name), limits=each.resources.limits) for each in containers)
    nobody = PodRef(namespace=Namespace(""), name=PodName(""), uid=PodUid(""))
    try:
        found = read_requests(Pod(ref=nobody, containers=parts))
    except PartageError:
        return None
    needs = (Needs(each.count, each.share_milli, each.memory_bytes) for each in found.values())
    return max(needs, key=lambda each: (each.share_milli, each.memory_bytes or 0), default=None)


def _asks(part: PodPart) -> bool:
    return any(key.startswith(PREFIX) for key in part.resources.limits)


def _asked(containers: tuple[PodPart, ...]) -> str:
    """`500 milli, 8 GiB` if the request is readable; otherwise the resources as written."""
    needs = needs_of(containers)
    if needs is not None:
        memory = "memory by its share" if needs.memory_bytes is None else amount(needs.memory_bytes)
        return f"{needs.share_milli} milli, {memory}" + (f", on each of {needs.cards} cards" * (needs.cards > 1))
    limits = ((key, text) for each in containers for key, text in each.resources.limits.items() if "/" in key)
    written = [printable(f"{key} {text}")[:_LONGEST_ASK] for key, text in limits]
    return ", ".join(written[:_MOST_ASKS]) or "cards, in words that are not shown here"


def _why(pod: SeenPod, condition: PodCondition | None, scheduler: str) -> str:
    if pod.spec.scheduling_gates:
        names = ", ".join(each.name for each in pod.spec.scheduling_gates[:_MOST_ASKS])
        return f"it is not to be placed while it has scheduling gates: {names}"[:LONGEST_WHY]
    if condition is not None and condition.message:
        return condition.message[:LONGEST_WHY]
    named = pod.spec.scheduler_name
    if named == scheduler:
        return f"{scheduler} has not said yet why: either it is about to place it, or it does not run"
    return f"{named or 'the default scheduler'} has not said why, and it asks for cards of partage"[:LONGEST_WHY]


def _condition(pod: SeenPod, kind: str) -> PodCondition | None:
    return next(_of_kind(pod.status.conditions, kind), None)


def _of_kind(conditions: Iterable[PodCondition], kind: str) -> Iterator[PodCondition]:
    return (each for each in conditions if each.type == kind and (kind != "PodScheduled" or each.status == "False"))


def _allocation(text: str) -> Allocation | None:
    """Unverified: admission lets only partage write it, and nothing is decided here."""
    try:
        return decode_allocation(text, (GPU,)) if text else None
    except PartageError:
        return None
