"""Kubernetes' nodes and pods as far as a replay looks at them; what is not named here is ignored."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from partage_plugins.vocabulary import (
    ContainerName,
    Namespace,
    Pod,
    PodContainer,
    PodName,
    PodRef,
    PodUid,
    Role,
)


class _Object(Struct, frozen=True, rename="camel"):
    """Fields are spelt as Kubernetes does."""


class Metadata(_Object, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class Resources(_Object, frozen=True):
    limits: Mapping[str, str] = {}
    requests: Mapping[str, str] = {}


class AContainer(_Object, frozen=True, kw_only=True):
    """One container of a pod."""

    name: str
    restart_policy: str | None = None
    resources: Resources = Resources()


class Spec(_Object, frozen=True, kw_only=True):
    """Of a pod; of a node nothing is read."""

    node_name: str = ""
    init_containers: tuple[AContainer, ...] = ()
    containers: tuple[AContainer, ...] = ()
    overhead: Mapping[str, str] = {}


class Status(_Object, frozen=True, kw_only=True):
    """`phase` of a pod, `allocatable` of a node."""

    phase: str = ""
    allocatable: Mapping[str, str] = {}


class Object(_Object, frozen=True, kw_only=True):
    """A node, a pod, or something else."""

    kind: str
    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()


class Objects(_Object, frozen=True, kw_only=True):
    items: tuple[Object, ...]


def pod_of(found: Object) -> Pod:
    """As dialects read it; init containers first, as they run."""
    meta = found.metadata
    ref = PodRef(namespace=Namespace(meta.namespace), name=PodName(meta.name), uid=PodUid(meta.uid))
    first = [
        _container(each, "sidecar" if each.restart_policy == "Always" else "init")
        for each in found.spec.init_containers
    ]
    apps = [_container(each, "app") for each in found.spec.containers]
    return Pod(ref=ref, labels=meta.labels, annotations=meta.annotations, containers=(*first, *apps))


def _container(each: AContainer, role: Role) -> PodContainer:
    return PodContainer(
        name=ContainerName(each.name), role=role, limits=each.resources.limits, requests=each.resources.requests
    )
