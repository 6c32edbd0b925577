"""Objects of the API server, made from what one would write in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from partage_scheduler.objects import ApiClaim, ApiCsiNode, ApiNamespace, ApiNode, ApiPod, ApiStorageClass, ApiVolume

T = TypeVar("T")
Json = Mapping[str, Any]
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ALLOCATABLE = {"cpu": "8", "memory": "64Gi", "pods": "110"}


def read(type_: type[T], **fields: Any) -> T:
    return msgspec.json.decode(msgspec.json.encode(fields), type=type_)


def node(
    name: str,
    labels: Json | None = None,
    *,
    taints: tuple[Json, ...] = (),
    unschedulable: bool = False,
    images: tuple[Json, ...] = (),
    **allocatable: str,
) -> ApiNode:
    """`allocatable` is named as in Python: `ephemeral_storage`."""
    amounts = ALLOCATABLE | {key.replace("_", "-"): value for key, value in allocatable.items()}
    return read(
        ApiNode,
        metadata={"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        spec={"unschedulable": unschedulable, "taints": taints},
        status={"allocatable": amounts, "images": images},
    )


def pod(  # noqa: PLR0913  (as pods have them; all but the name have defaults)
    name: str,
    labels: Json | None = None,
    *,
    namespace: str = "default",
    requests: Json | None = None,
    ports: tuple[Json, ...] = (),
    going: bool = False,
    status: Json | None = None,
    **spec: Any,
) -> ApiPod:
    container = {"name": "main", "resources": {"requests": requests or {}}, "ports": ports}
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return read(ApiPod, metadata=metadata, spec={"containers": [container], **spec}, status=status or {})


def namespace(name: str, **labels: str) -> ApiNamespace:
    return read(ApiNamespace, metadata={"name": name, "labels": labels})


def claim(
    name: str, volume: str = "", *, namespace: str = "default", mode: str = "ReadWriteOnce", **spec: Any
) -> ApiClaim:
    metadata = {"name": name, "namespace": namespace}
    spec = {"volumeName": volume, "accessModes": [mode], **spec}
    return read(ApiClaim, metadata=metadata, spec=spec, status={"phase": "Bound" if volume else "Pending"})


def volume(name: str, labels: Json | None = None, *, of_claim: str = "", **spec: Any) -> ApiVolume:
    reference = {"claimRef": {"namespace": "default", "name": of_claim}} if of_claim else {}
    return read(ApiVolume, metadata={"name": name, "labels": labels or {}}, spec={**reference, **spec})


def storage_class(name: str, mode: str) -> ApiStorageClass:
    return read(ApiStorageClass, metadata={"name": name}, volumeBindingMode=mode)


def csi_node(name: str, **most: int) -> ApiCsiNode:
    drivers = [{"name": driver, "allocatable": {"count": count}} for driver, count in most.items()]
    return read(ApiCsiNode, metadata={"name": name}, spec={"drivers": drivers})


def near(selector: Json | None, key: str = ZONE, **term: Any) -> Json:
    """A term of pod affinity."""
    return {"topologyKey": key, **({} if selector is None else {"labelSelector": selector}), **term}


def affine(*terms: Json) -> Json:
    return {"podAffinity": {REQUIRED: terms}}


def apart(*terms: Json) -> Json:
    return {"podAntiAffinity": {REQUIRED: terms}}


def labelled(**labels: str) -> Json:
    return {"matchLabels": labels}
