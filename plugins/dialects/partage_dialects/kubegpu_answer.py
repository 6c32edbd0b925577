"""The result that KubeGPU's scheduler writes into the request's annotation: the node, and the card for each path.

The rest of the annotation stays as the user wrote it. Missing paths are generated as KubeGPU's scheduler does: it
numbers the cards of a container that requested only a number. Paths and cards are paired in order: a container's cards
are right, but which card belongs to which of several groups is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from partage_dialects.kubegpu_annotation import Words
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.gpu import GPU, GpuGrant
from partage_plugins.api.pods import PodContainer


def answered(text: str, words: Words, containers: Iterable[PodContainer], allocation: Allocation) -> str:
    """The annotation with the result added; `text` must be a valid request."""
    said: dict[str, Any] = msgspec.json.decode(text)
    said["nodename"] = allocation.node
    for container in containers:
        grants = allocation.given(container.name, GPU)
        if grants:
            field = "runningcontainer" if container.role == "app" else "initcontainer"
            infos = said[field] = said.get(field) or {}
            info = infos.setdefault(container.name, {})
            info["allocatefrom"] = _paths(info.get("requests") or {}, words.prefix, grants)
    return msgspec.json.encode(said).decode()


def _paths(requests: Mapping[str, int], prefix: str, grants: Iterable[GpuGrant]) -> dict[str, str]:
    cards = [f"{prefix}/gpu/{grant.card}/cards" for grant in grants]
    asked = sorted(key for key in requests if key.startswith(prefix) and key.endswith("/cards"))
    if len(asked) != len(cards):
        asked = [f"{prefix}/gpu/{number}/cards" for number in range(len(cards))]
    return dict(zip(asked, cards, strict=True))
