"""What pods ask for, read once for all pods that say the same: most come from few templates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, Protocol

from partage_plugins.codecs import read_gang
from partage_plugins.vocabulary import ContainerRequest, Namespace, Pod, PodName, PodRef, PodRequest, Room
from partage_scheduler.objects import ApiPod, seen
from partage_scheduler.objects.pods import Container
from partage_scheduler.predicates.asking import needs

_MOST: Final = 4096


class Requests(Protocol):
    """Who reads what a pod asks for."""

    def requests(self, pod: Pod) -> PodRequest:
        """What it asks for of every kind; refused where it is written wrongly."""
        ...


class Reading:
    """Requests of pods; what a dialect reads may depend on anything but the pod's name and uid."""

    def __init__(self, side: Requests) -> None:
        self._side = side
        self._known: dict[Hashable, tuple[tuple[ContainerRequest, ...], Room]] = {}

    def of(self, pod: ApiPod) -> PodRequest:
        """What it asks for, of devices and beside them; raises what dialects raise, and for a gang written wrongly."""
        said = _said_by(pod)
        known = self._known.get(said)
        if known is None:
            known = self._read(pod, said)
        ref = PodRef(namespace=Namespace(pod.namespace), name=PodName(pod.name), uid=pod.uid)
        return PodRequest(pod=ref, containers=known[0], needs=known[1])

    def _read(self, pod: ApiPod, said: Hashable) -> tuple[tuple[ContainerRequest, ...], Room]:
        read_gang(pod.namespace, pod.metadata.annotations)
        request = self._side.requests(seen(pod))
        if len(self._known) >= _MOST:
            self._known.clear()
        known = self._known[said] = request.containers, needs(pod)
        return known


def _said_by(pod: ApiPod) -> Hashable:
    """All that a request may depend on."""
    meta, spec = pod.metadata, pod.spec
    return (
        meta.namespace,
        tuple(meta.labels.items()),
        tuple(meta.annotations.items()),
        tuple(spec.overhead.items()),
        tuple([_of(each) for each in spec.init_containers]),
        tuple([_of(each) for each in spec.containers]),
        None if spec.resources is None else _amounts(spec.resources.limits, spec.resources.requests),
    )


def _of(container: Container) -> Hashable:
    amounts = container.resources
    return container.name, container.restart_policy, _amounts(amounts.limits, amounts.requests)


def _amounts(limits: Mapping[str, str], requests: Mapping[str, str]) -> Hashable:
    return tuple(limits.items()), tuple(requests.items())
