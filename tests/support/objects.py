"""API objects for tests, as JSON to write and as the types that read it, and what their annotations carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from partage_base.kube import micro_time
from partage_plugins.api import (
    GPU,
    Allocation,
    Card,
    CardId,
    ContainerName,
    GpuGrant,
    GpuPart,
    Inventory,
    NodeName,
    PodUid,
    Reads,
    Ready,
    keys,
)
from partage_plugins.codecs import encode_allocation, encode_inventory
from partage_scheduler.objects import ApiClaim, ApiCsiNode, ApiNamespace, ApiNode, ApiPod, ApiStorageClass, ApiVolume
from rig.identity.people import OUR_NAMESPACE

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
    uid: str = "",
    node: str = "",
    annotations: Mapping[str, str] | None = None,
    owner: tuple[str, str] | None = None,
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
    """A pod with one container, `main`, as a client sends it; `gang` and `size` add it to a gang.

    `owner` is the kind and the name of its controller.
    """
    noted = {**(annotations or {}), **({} if gang is None else {keys.GANG: gang})}
    noted |= {} if size is None else {keys.GANG_SIZE: str(size)}
    asked = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value} | dict(requests or {})
    most = dict(limits or {}) | ({keys.GPU_MILLI: str(milli)} if milli else {})
    container = {"name": "main", "image": "x", "resources": {"requests": asked, "limits": most}, "ports": [*ports]}
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": noted}
    if uid:
        metadata["uid"] = uid
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    if node:
        spec["nodeName"] = node
    if gates:
        spec["schedulingGates"] = [{"name": each} for each in gates]
    told = {"phase": phase or ("Running" if node else "Pending"), "reason": reason, "nominatedNodeName": nominated}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": OURS, "containers": [container], **spec},
        "status": {key: text for key, text in told.items() if text} | dict(status or {}),
    }


def pod(
    name: str, labels: Json | None = None, *, uid: str = "", created: int = 0, version: int = 0, **more: Any
) -> ApiPod:
    """The pod as the API server returns it, with the fields that it adds."""
    body = pod_body(name, labels, uid=uid or f"uid-{name}", **more)
    body["metadata"] |= {
        "resourceVersion": str(version) if version else "",
        "creationTimestamp": f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z",
    }
    return read(ApiPod, **body)


def node_body(  # noqa: PLR0913  each is said where it matters
    name: str,
    inventory: Inventory | str | None = None,
    labels: Json | None = None,
    *,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
    images: Iterable[Json] = (),
    **room: str,
) -> dict[str, Any]:
    """A large node as a client sends it; `inventory` may be (malformed) text. `room` sets its resources."""
    noted = dict(annotations or {})
    if inventory is not None:
        noted[keys.INVENTORY] = inventory if isinstance(inventory, str) else written(inventory)
    amounts = _ROOM | room
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": noted, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": dict(spec or {}),
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "images": [*images],
            "conditions": [{"type": "Ready", "status": "True", "reason": "MadeUp", "message": "there is no kubelet"}],
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


def lease_body(
    name: str, annotations: Mapping[str, str] | None = None, *, age_s: float = 0, lasts_s: int = 40
) -> dict[str, Any]:
    """A node's heartbeat of that age, as its advertiser writes it."""
    at = micro_time(datetime.now(UTC) - timedelta(seconds=age_s))
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": OUR_NAMESPACE, "annotations": annotations or {}},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": lasts_s, "renewTime": at},
    }


def advertiser_body(node: str, phase: str = "Running") -> dict[str, Any]:
    """The advertiser's pod of a node."""
    labels = {"app.kubernetes.io/name": "partage-advertiser"}
    return pod_body(
        f"advertiser-{node}", labels, namespace=OUR_NAMESPACE, node=node, phase=phase, schedulerName="default-scheduler"
    )


def of_cards(cards: Iterable[Card], *, ready: Ready = READY, reads: Reads | None = None, **part: Any) -> Inventory:
    """The inventory of a node with these cards."""
    found = GpuPart(driver="580", cuda="13.0", cards=tuple(cards), **part)
    return Inventory(kinds={GPU.name: found}, ready=ready, reads=reads or Reads())


def written(inventory: Inventory) -> str:
    return encode_inventory(inventory).decode()


def grant(card: str, milli: int = 500, *, memory: int = 1 << 30, **more: Any) -> GpuGrant:
    return GpuGrant(card=CardId(card), share_milli=milli, limit_milli=1000, memory_bytes=memory, **more)


def allocation(uid: str, node: str, *grants: GpuGrant, container: str = "main", gen: int = 1) -> Allocation:
    """The allocation of a pod in which one container has cards."""
    containers = {ContainerName(container): {GPU.name: grants}}
    return Allocation(gen=gen, pod=PodUid(uid), node=NodeName(node), containers=containers)


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


def on_terms(*terms: Json) -> Json:
    """Affinity to nodes that match one of these terms."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def on_nodes(*names: str) -> Json:
    """Affinity to these nodes."""
    return on_terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]})


def affine(*terms: Json) -> Json:
    return {"podAffinity": {REQUIRED: terms}}


def apart(*terms: Json) -> Json:
    return {"podAntiAffinity": {REQUIRED: terms}}


def labelled(**labels: str) -> Json:
    return {"matchLabels": labels}
