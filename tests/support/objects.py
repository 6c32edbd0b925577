"""Builders of API objects: as JSON to write, and as the types that the scheduler reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from partage_plugins.api import GPU, Allocation, Card, GpuPart, Inventory, Reads, Ready, keys
from partage_plugins.codecs import encode_allocation, encode_inventory
from partage_scheduler.objects import ApiClaim, ApiCsiNode, ApiNamespace, ApiNode, ApiPod, ApiStorageClass, ApiVolume

T = TypeVar("T")
Json = Mapping[str, Any]
OURS = "partage-scheduler"
NAMESPACE = "team"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
READY = Ready(crishim=True, broker=True)
_ROOM = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}


def read(type_: type[T], **fields: Any) -> T:
    return msgspec.json.decode(msgspec.json.encode(fields), type=type_)


def pod_body(  # noqa: PLR0913  each is said where it matters
    name: str,
    labels: Json | None = None,
    *,
    namespace: str = NAMESPACE,
    node: str = "",
    annotations: Mapping[str, str] | None = None,
    gang: str | None = None,
    size: int | None = None,
    gates: tuple[str, ...] = (),
    cpu: str = "",
    memory: str = "",
    milli: int = 0,
    requests: Json | None = None,
    limits: Json | None = None,
    ports: Iterable[Json] = (),
    going: bool = False,
    phase: str = "",
    reason: str = "",
    nominated: str = "",
    status: Json | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod with one container, `main`, as a client sends it; `gang` and `size` add it to a gang."""
    noted = {**(annotations or {}), **({} if gang is None else {keys.GANG: gang})}
    noted |= {} if size is None else {keys.GANG_SIZE: str(size)}
    asked = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value} | dict(requests or {})
    most = dict(limits or {}) | ({keys.GPU_MILLI: str(milli)} if milli else {})
    container = {"name": "main", "image": "x", "resources": {"requests": asked, "limits": most}, "ports": [*ports]}
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": noted}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    if node:
        spec["nodeName"] = node
    if gates:
        spec["schedulingGates"] = [{"name": each} for each in gates]
    told = {"phase": phase or ("Running" if node else "Pending"), "reason": reason, "nominatedNodeName": nominated}
    return {
        "metadata": metadata,
        "spec": {"schedulerName": OURS, "containers": [container], **spec},
        "status": {key: text for key, text in told.items() if text} | dict(status or {}),
    }


def pod(
    name: str, labels: Json | None = None, *, uid: str = "", created: int = 0, version: int = 0, **more: Any
) -> ApiPod:
    """The pod as the API server returns it, with the fields that it adds."""
    body = pod_body(name, labels, **more)
    body["metadata"] |= {
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version) if version else "",
        "creationTimestamp": f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z",
    }
    return read(ApiPod, **body)


def node_body(
    name: str,
    inventory: Inventory | str | None = None,
    labels: Json | None = None,
    *,
    spec: Json | None = None,
    images: Iterable[Json] = (),
    **room: str,
) -> dict[str, Any]:
    """A large node as a client sends it; `inventory` may be (malformed) text. `room` sets its allocatable resources."""
    text = encode_inventory(inventory).decode() if isinstance(inventory, Inventory) else inventory
    return {
        "metadata": {
            "name": name,
            "annotations": {} if text is None else {keys.INVENTORY: text},
            "labels": {HOSTNAME: name, **(labels or {})},
        },
        "spec": dict(spec or {}),
        "status": {
            "allocatable": _ROOM | room,
            "images": [*images],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def node(  # noqa: PLR0913  each is said where it matters
    name: str,
    inventory: Inventory | str | None = None,
    labels: Json | None = None,
    *,
    uid: str = "",
    version: int = 0,
    cpu: str = "8",
    memory: str = "8Gi",
    taints: Iterable[Json] = (),
    unschedulable: bool = False,
    **more: Any,
) -> ApiNode:
    """A small node as the API server returns it."""
    spec = {"taints": [*taints], "unschedulable": unschedulable}
    body = node_body(name, inventory, labels, spec=spec, cpu=cpu, memory=memory, **more)
    body["metadata"] |= {"uid": uid or f"uid-{name}", "resourceVersion": str(version) if version else ""}
    return read(ApiNode, **body)


def of_cards(cards: Iterable[Card], *, ready: Ready = READY, reads: Reads | None = None, **part: Any) -> Inventory:
    """The inventory of a node with these cards."""
    found = GpuPart(driver="580", cuda="13.0", cards=tuple(cards), **part)
    return Inventory(kinds={GPU.name: found}, ready=ready, reads=reads or Reads())


def given(allocation: Allocation, signature: str = "good") -> dict[str, str]:
    """The annotations of a pod with this allocation."""
    return {keys.ALLOCATION: encode_allocation(allocation), keys.SIGNATURE: signature}


def namespace(name: str, **labels: str) -> ApiNamespace:
    return read(ApiNamespace, metadata={"name": name, "labels": labels})


def claim(
    name: str, volume: str = "", *, namespace: str = NAMESPACE, mode: str = "ReadWriteOnce", **spec: Any
) -> ApiClaim:
    metadata = {"name": name, "namespace": namespace}
    spec = {"volumeName": volume, "accessModes": [mode], **spec}
    return read(ApiClaim, metadata=metadata, spec=spec, status={"phase": "Bound" if volume else "Pending"})


def volume(name: str, labels: Json | None = None, *, of_claim: str = "", **spec: Any) -> ApiVolume:
    reference = {"claimRef": {"namespace": NAMESPACE, "name": of_claim}} if of_claim else {}
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
