"""What is kept of a pod beyond the size limits: all that it takes of its node, and the first of the rest.

CPU, memory and other native Kubernetes resources count in all of its containers. Of its anti-affinity terms, labels,
extended resources, ports and volumes the first count, up to about the limits of a pod that is to be placed; only its
owner loses by the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from math import ceil
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from partage_plugins.api import keys
from partage_plugins.codecs import parse_quantity
from partage_plugins.errors import DecodeError
from partage_scheduler.objects.base import Condition, Meta
from partage_scheduler.objects.excess import AMOUNTS, LABELS, OF_PODS, PORTS, REACHING, VOLUMES, reaches
from partage_scheduler.objects.selectors import Affinity, PodAffinity, PodTerm
from partage_scheduler.objects.specs import Amounts, Container, ContainerStatus, PodSpec, PodStatus

T = TypeVar("T")
_FIRST_CONTAINERS: Final = 64
_NAMES: Final = 64
_LEAST_NAMES: Final = 16
"""Limits of containers that are kept of such a pod, and of resources of one of them: all native ones fit."""
_TERM_BYTES: Final = 16 << 10
"""Limit of all terms that are kept, encoded."""
_TEXT: Final = msgspec.json.Encoder()
_KEPT: Final = keys.POLICIES | keys.GANGS | keys.RESIZES | {keys.SUSPEND, keys.ALLOCATION, keys.SIGNATURE}
_OTHERS_BYTES: Final = 1024
_OTHER_BYTES: Final = 256
"""Limits of foreign annotations, in total and each: a request in another dialect is short."""
_OURS: Final = (keys.PREFIX, keys.ALLOC_PREFIX)
_CONDITIONS: Final = frozenset(("PodScheduled", "PodResizePending", keys.RESIZED))
_LONGEST_MESSAGE: Final = 1024


def with_read_annotations(meta: Meta) -> Meta:
    """Keeps our annotations of a pod on a node; without an allocation also short foreign ones, as possible requests."""
    notes = meta.annotations
    kept = {key: text for key, text in notes.items() if key.startswith(_OURS)}
    left = 0 if keys.ALLOCATION in kept else _OTHERS_BYTES
    for key, text in notes.items():
        size = len(key) + len(text)
        if key not in kept and size <= min(left, _OTHER_BYTES):
            kept[key], left = text, left - size
    return meta if len(kept) == len(notes) else replace(meta, annotations=kept)


def first_of_metadata(meta: Meta) -> Meta:
    """Keeps the first labels, and the annotations that are read."""
    ours = {key: text for key, text in meta.annotations.items() if key in _KEPT}
    return replace(meta, labels=_first(meta.labels, LABELS), annotations=ours)


def first_of_spec(namespace: str, spec: PodSpec) -> PodSpec:
    """Keeps all that its containers take and the first of the rest; drops what only affects its own placement."""
    return replace(
        spec,
        node_selector={},
        affinity=None if spec.affinity is None else _first_terms(namespace, spec.affinity),
        tolerations=(),
        topology_spread_constraints=(),
        init_containers=_first_inits(spec.init_containers),
        containers=_first_apps(spec),
        overhead=_first_amounts(spec.overhead),
        resources=None if spec.resources is None else _first_of(spec.resources),
        volumes=spec.volumes[:VOLUMES],
        resource_claims=spec.resource_claims[:1],
        scheduling_gates=spec.scheduling_gates[:1],
    )


def first_of_status(status: PodStatus) -> PodStatus:
    conditions = tuple(_short(each) for each in status.conditions if each.type in _CONDITIONS)
    return replace(
        status,
        reason=status.reason[:_LONGEST_MESSAGE],
        conditions=conditions[: len(_CONDITIONS)],
        init_container_statuses=_first_statuses(status.init_container_statuses),
        container_statuses=_first_statuses(status.container_statuses),
        resource_claim_statuses=status.resource_claim_statuses[:1],
        allocated_resources=_first_amounts(status.allocated_resources),
        resources=None if status.resources is None else _first_of(status.resources),
    )


def _short(condition: Condition) -> Condition:
    return replace(condition, message=condition.message[:_LONGEST_MESSAGE])


def _first_terms(namespace: str, affinity: Affinity) -> Affinity:
    """Keeps the first terms about other pods, anti-affinity before affinity."""
    left = _Left(namespace)
    apart = _first_of_affinity(affinity.pod_anti_affinity, left)
    near = _first_of_affinity(affinity.pod_affinity, left)
    return Affinity(pod_affinity=near, pod_anti_affinity=apart)


class _Left:
    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._terms, self._reaching, self._bytes = OF_PODS, REACHING, _TERM_BYTES

    def take(self, term: PodTerm) -> bool:
        """Whether this term is kept, too, within what is left of each limit."""
        size, is_far = len(_TEXT.encode(term)), reaches(term, self._namespace)
        if not self._terms or size > self._bytes or (is_far and not self._reaching):
            return False
        self._terms -= 1
        self._bytes -= size
        self._reaching -= is_far
        return True


def _first_of_affinity(affinity: PodAffinity | None, left: _Left) -> PodAffinity | None:
    if affinity is None:
        return None
    return PodAffinity(
        required=tuple(filter(left.take, affinity.required)),
        preferred=tuple(each for each in affinity.preferred if left.take(each.pod_affinity_term)),
    )


def _first_inits(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    """The first ones; the rest as one that requests their maximum, since they run one after the other."""
    first, rest = containers[:_FIRST_CONTAINERS], containers[_FIRST_CONTAINERS:]
    most: dict[str, int] = {}
    for name, milli, _ in _said_by(each for each in rest if not _stays(each)):
        most[name] = max(milli, most.get(name, 0))
    return (*_short_containers(first), _others(most)) if most else _short_containers(first)


def _first_apps(spec: PodSpec) -> tuple[Container, ...]:
    """The first ones; the rest as one that requests their sum."""
    first, rest = spec.containers[:_FIRST_CONTAINERS], spec.containers[_FIRST_CONTAINERS:]
    sidecars = (each for each in spec.init_containers[_FIRST_CONTAINERS:] if _stays(each))
    total: dict[str, int] = {}
    for name, milli, number in _said_by((*rest, *sidecars)):
        total[name] = total.get(name, 0) + milli * number
    return (*_short_containers(first), _others(total)) if total else _short_containers(first)


def _stays(init: Container) -> bool:
    return init.restart_policy == "Always"


def _short_containers(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    amounts, ports = _names_of_each(len(containers)), PORTS // max(1, len(containers))
    return tuple(
        replace(each, image="", resources=_first_of(each.resources, amounts), ports=each.ports[:ports])
        for each in containers
    )


def _said_by(containers: Iterable[Container]) -> Iterable[tuple[str, int, int]]:
    """Native resources, each requested amount in thousandths, and the number of containers that request it."""
    said: Counter[tuple[str, str]] = Counter()
    for each in containers:
        said.update({**each.resources.limits, **each.resources.requests}.items())
    for (name, text), number in said.items():
        if _is_kubernetes_own(name):
            yield name, _milli(text), number


def _others(milli: Mapping[str, int]) -> Container:
    requests = {name: f"{number}m" for name, number in _first(milli, _NAMES).items()}
    return Container(name="others", resources=Amounts(requests=requests))


def _milli(text: str) -> int:
    try:
        return ceil(1000 * parse_quantity(text))
    except DecodeError:
        return 0


def _names_of_each(containers: int) -> int:
    return max(_LEAST_NAMES, min(_NAMES, AMOUNTS // max(1, containers)))


def _first_of(amounts: Amounts, most: int = _NAMES) -> Amounts:
    return Amounts(limits=_first_amounts(amounts.limits, most), requests=_first_amounts(amounts.requests, most))


def _first_amounts(amounts: Mapping[str, str], most: int = _NAMES) -> Mapping[str, str]:
    """The first `most` of them, native resources before extended ones."""
    if len(amounts) <= most:
        return amounts
    return _first(dict(sorted(amounts.items(), key=lambda item: not _is_kubernetes_own(item[0]))), most)


def _first_statuses(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    first = statuses[:_FIRST_CONTAINERS]
    most = _names_of_each(len(first))
    return tuple(
        replace(
            each,
            allocated_resources=_first_amounts(each.allocated_resources, most),
            resources=None if each.resources is None else _first_of(each.resources, most),
        )
        for each in first
    )


def _is_kubernetes_own(name: str) -> bool:
    return "/" not in name


def _first(items: Mapping[str, T], most: int) -> Mapping[str, T]:
    return dict(islice(items.items(), most))
