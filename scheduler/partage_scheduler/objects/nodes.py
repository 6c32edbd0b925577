"""A node as the scheduler reads it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from msgspec.structs import force_setattr, replace

from partage_plugins.api import NodeName
from partage_plugins.api.keys import PREFIX
from partage_scheduler.objects.base import ApiObject, Int64, Meta, Object

LABELS: Final = 512
TAINTS: Final = 128
AMOUNTS: Final = 128
IMAGES: Final = 256
_NAMES: Final = 8
"""Limit of names per image."""


class Taint(Object, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = ""
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""


class NodeSpec(Object, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Image(Object, frozen=True, kw_only=True):
    names: tuple[str, ...] | None = ()
    size_bytes: Int64 = 0


class NodeStatus(Object, frozen=True, kw_only=True):
    allocatable: Mapping[str, str] = {}
    images: tuple[Image, ...] = ()


class ApiNode(ApiObject, frozen=True, kw_only=True):
    """A node. Data beyond the limits is dropped; if that is more than images, the node takes no new pods."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def __post_init__(self) -> None:
        labels, taints, allocatable = self.metadata.labels, self.spec.taints, self.status.allocatable
        notes = {key: text for key, text in self.metadata.annotations.items() if key.startswith(PREFIX)}
        images = tuple(_first_names(each) for each in self.status.images[:IMAGES])
        if len(labels) > LABELS or len(taints) > TAINTS or len(allocatable) > AMOUNTS or len(notes) > LABELS:
            labels, allocatable = dict(islice(labels.items(), LABELS)), dict(islice(allocatable.items(), AMOUNTS))
            notes = dict(islice(notes.items(), LABELS))
            force_setattr(self, "spec", NodeSpec(unschedulable=True, taints=taints[:TAINTS]))
        force_setattr(self, "metadata", replace(self.metadata, labels=labels, annotations=notes))
        force_setattr(self, "status", NodeStatus(allocatable=allocatable, images=images))

    @property
    def name(self) -> NodeName:
        return NodeName(self.metadata.name)


def _first_names(image: Image) -> Image:
    return image if len(image.names or ()) <= _NAMES else replace(image, names=(image.names or ())[:_NAMES])
