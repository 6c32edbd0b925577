"""Objects of a cluster as lines for comparison, without the fields that the cluster writes by itself. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rig.client.resources import Json

_OF_THE_SERVER: Final = frozenset(("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"))
_SEEN: Final = frozenset(("status", "conditions"))
"""Observed state, in contrast to desired state."""
_ALIVE: Final = frozenset(("Lease", "Node"))
"""Heartbeats change these all the time."""


def lines(objects: Iterable[Json]) -> Iterator[str]:
    """Two objects are equal if their lines are; each object has at least one line."""
    for each in objects:
        metadata = each["metadata"]
        name = f"{each['kind']} {metadata.get('namespace', '')} {metadata['name']}"
        if each["kind"] in _ALIVE:
            yield name
        else:
            kept = {key: value for key, value in metadata.items() if key not in _OF_THE_SERVER}
            said = {key: value for key, value in each.items() if key not in _SEEN}
            yield from _leaves(f"{name} ", {**said, "metadata": kept})


def _leaves(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from _leaves(f"{path}.{key}", value[key])
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from _leaves(f"{path}[{number}]", each)
    else:
        yield f"{path}={json.dumps(value)}"
