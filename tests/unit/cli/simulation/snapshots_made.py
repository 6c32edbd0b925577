"""Nodes and pods as printed by `kubectl get nodes,pods -A -o json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import encode_allocation
from partage_plugins.testing.examples import inventory
from support.objects import allocation, grant, node_body, pod_body


def card(card_id: str, **fields: Any) -> dict[str, Any]:
    memory = 16 << 30
    named = {"id": card_id, "index": 0, "model": "T4", "memory": memory, "cc": "7.5", "pci": "0", "pool": "shared"}
    return named | fields


def node(name: str, *cards: Mapping[str, Any], cpu: str = "8", text: str | None = None) -> dict[str, Any]:
    """A node with these cards; `text` replaces the inventory."""
    written = text if text is not None else inventory(gpu={"driver": "1", "cuda": "1", "cards": cards})
    return node_body(name, written if cards or text is not None else None, cpu=cpu, memory="64Gi")


def pod(name: str, milli: int = 0, *, cpu: str = "1", **more: Any) -> dict[str, Any]:
    """A pod that requests this much of a card, or none."""
    return pod_body(name, namespace="default", uid=name, milli=milli, cpu=cpu, **more)


def holding(name: str, milli: int, *, node: str, card_id: str) -> dict[str, Any]:
    """A pod whose request has been granted."""
    given = allocation(name, node, grant(card_id, milli, memory=0))
    return pod(name, milli, node=node, annotations={ALLOCATION: encode_allocation(given)})


def printed(*objects: Mapping[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()
