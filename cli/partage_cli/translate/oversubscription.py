"""Memory oversubscription settings of HAMi and Volcano, as the advertiser's setting. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from partage_cli.translate.yaml_text import read_mappings
from partage_gpu.discovery.settings import MEMORY_BEYOND
from partage_plugins.errors import DecodeError

_SCALING: Final = "devicememoryscaling"
_NODES: Final = "nodeconfig"
_MOST_SCALING: Final = 11
"""A scaling includes the card itself, so this is 1000 % beyond it."""


def scalings_in(document: Mapping[str, object], label: str) -> Iterator[str]:
    """A sentence for each `deviceMemoryScaling` in a ConfigMap, whose values are YAML or JSON documents."""
    data = document.get("data")
    if document.get("kind") != "ConfigMap" or not isinstance(data, dict):
        return
    for key, text in data.items():
        if isinstance(text, str) and _SCALING in text.lower():
            yield from _in_text(text, f"{label}, {key}")


def _in_text(text: str, where: str) -> Iterator[str]:
    try:
        documents = read_mappings(text.encode(), where, most=1)
    except DecodeError as error:
        yield str(error)
        return
    for document in documents:
        for part in document.values():
            if isinstance(part, dict):
                yield from _said(part, where, "")
        yield from _said(document, where, "")
        nodes = document.get(_NODES)
        for node in nodes if isinstance(nodes, list) else ():
            if isinstance(node, dict):
                yield from _said(node, where, f" of node {node.get('name')}")


def _said(fields: Mapping[str, object], where: str, whose: str) -> Iterator[str]:
    for name, value in fields.items():
        if name.lower() == _SCALING:
            yield f"{where}: deviceMemoryScaling {value}{whose} is {_setting(value)}"


def _setting(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_SCALING:
        return f"nothing that partage can promise; allowed: a number up to {_MOST_SCALING}"
    percent = max(0, round((value - 1) * 100))
    return f"{MEMORY_BEYOND}={percent}% of the advertiser there, for pods that say partage.dev/movable"
