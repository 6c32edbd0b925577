"""Pods and nodes as the API server would tell them, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from partage_plugins.codecs import encode_allocation, encode_inventory
from partage_plugins.vocabulary import Allocation, Inventory, keys
from partage_scheduler.objects import ApiNode, ApiPod

OURS = "partage-scheduler"


def pod(  # noqa: PLR0913  each is said where it matters
    name: str,
    *,
    uid: str = "",
    namespace: str = "team",
    node: str = "",
    priority: int = 0,
    created: int = 0,
    gates: tuple[str, ...] = (),
    gang: str | None = None,
    size: int | None = None,
    cpu: str = "",
    memory: str = "",
    milli: int = 0,
    version: int = 0,
    phase: str = "",
    reason: str = "",
    going: bool = False,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    status_nominated: str = "",
    **spec: Any,
) -> ApiPod:
    """A pod of one container, `main`; `size` makes it one of a gang."""
    noted = dict(annotations or {})
    if gang is not None:
        noted[keys.GANG] = gang
    if size is not None:
        noted[keys.GANG_SIZE] = str(size)
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    limits = {keys.GPU_MILLI: str(milli)} if milli else {}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version) if version else "",
        "creationTimestamp": f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z",
        "labels": dict(labels or {}),
        "annotations": noted,
    }
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    whole = {
        "metadata": metadata,
        "spec": {
            "schedulerName": OURS,
            "nodeName": node,
            "priority": priority,
            "schedulingGates": [{"name": gate} for gate in gates],
            "containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}],
        }
        | spec,
        "status": {
            "phase": phase or ("Running" if node else "Pending"),
            "reason": reason,
            "nominatedNodeName": status_nominated,
        },
    }
    return msgspec.convert(whole, ApiPod)


def node(  # noqa: PLR0913  each is said where it matters
    name: str,
    inventory: Inventory | str | None = None,
    *,
    uid: str = "",
    version: int = 0,
    cpu: str = "8",
    memory: str = "8Gi",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> ApiNode:
    """A node with that much room; its inventory is one, or what stands where one should."""
    text = encode_inventory(inventory).decode() if isinstance(inventory, Inventory) else inventory
    whole = {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version) if version else "",
            "labels": dict(labels or {}),
            "annotations": {} if text is None else {keys.INVENTORY: text},
        },
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }
    return msgspec.convert(whole, ApiNode)


def given(allocation: Allocation, signature: str = "good") -> dict[str, str]:
    """The annotations of a pod that was given this."""
    return {keys.ALLOCATION: encode_allocation(allocation), keys.SIGNATURE: signature}
