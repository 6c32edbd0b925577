"""Nodes and pods as printed by `kubectl get nodes,pods -A -o json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from partage_plugins.api import Card
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import encode_allocation
from support.objects import allocation, grant, node_body, of_cards, pod_body


def node(name: str, *cards: Card, text: str | None = None) -> dict[str, Any]:
    """A node with these cards, or with this text for its inventory."""
    return node_body(name, of_cards(cards) if cards else text, cpu="8", memory="64Gi")


def pod(name: str, milli: int = 0, *, cpu: str = "1", **more: Any) -> dict[str, Any]:
    """A pod that requests this much of a card, or none."""
    return pod_body(name, namespace="default", uid=name, milli=milli, cpu=cpu, **more)


def holding(name: str, milli: int, *, node: str, card_id: str) -> dict[str, Any]:
    """A pod whose request has been granted."""
    given = allocation(name, node, grant(card_id, milli, memory=0))
    return pod(name, milli, node=node, annotations={ALLOCATION: encode_allocation(given)})


def printed(*objects: Mapping[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()
