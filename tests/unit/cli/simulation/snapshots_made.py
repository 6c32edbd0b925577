"""Nodes and pods as printed by `kubectl get nodes,pods -A -o json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from partage_plugins.api import GPU, Allocation, CardId, ContainerName, GpuGrant, NodeName, PodUid
from partage_plugins.api.keys import ALLOCATION, INVENTORY
from partage_plugins.codecs import encode_allocation
from partage_plugins.testing.examples import inventory


def card(card_id: str, **fields: Any) -> dict[str, Any]:
    memory = 16 << 30
    named = {"id": card_id, "index": 0, "model": "T4", "memory": memory, "cc": "7.5", "pci": "0", "pool": "shared"}
    return named | fields


def node(name: str, *cards: Mapping[str, Any], cpu: str = "8", text: str | None = None) -> dict[str, Any]:
    """A node with these cards; `text` replaces the inventory."""
    written = text if text is not None else inventory(gpu={"driver": "1", "cuda": "1", "cards": cards})
    metadata = {"name": name, "annotations": {INVENTORY: written} if cards or text is not None else {}}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": {"cpu": cpu, "memory": "64Gi"}}}


def pod(name: str, milli: int = 0, *, cpu: str = "1", node: str = "", **metadata: Any) -> dict[str, Any]:
    """A pod that requests this much of a card, or none."""
    limits = {"partage.dev/gpu-milli": str(milli)} if milli else {}
    container = {"name": "main", "resources": {"limits": limits, "requests": {"cpu": cpu}}}
    named = {"name": name, "namespace": "default", "uid": name} | metadata
    return {"kind": "Pod", "metadata": named, "spec": {"nodeName": node, "containers": [container]}}


def holding(name: str, milli: int, *, node: str, card_id: str) -> dict[str, Any]:
    """A pod whose request has been granted."""
    grant = GpuGrant(card=CardId(card_id), share_milli=milli, limit_milli=1000, memory_bytes=0)
    containers = {ContainerName("main"): {GPU.name: (grant,)}}
    text = encode_allocation(Allocation(gen=1, pod=PodUid(name), node=NodeName(node), containers=containers))
    return pod(name, milli, node=node, annotations={ALLOCATION: text})


def printed(*objects: Mapping[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()
