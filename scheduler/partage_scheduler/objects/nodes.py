"""A node as the scheduler reads it."""

from __future__ import annotations

from collections.abc import Mapping

from partage_plugins.vocabulary import NodeName
from partage_scheduler.objects.base import Condition, Int64, Meta, Object


class Taint(Object, frozen=True, kw_only=True):
    """What keeps pods away that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = ""
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""


class NodeSpec(Object, frozen=True, kw_only=True):
    """What the node's owner wants."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Image(Object, frozen=True, kw_only=True):
    """An image that is there already."""

    names: tuple[str, ...] | None = ()
    size_bytes: Int64 = 0


class NodeStatus(Object, frozen=True, kw_only=True):
    """How it stands."""

    allocatable: Mapping[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[Image, ...] = ()


class ApiNode(Object, frozen=True, kw_only=True):
    """A node."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> NodeName:
        """Its name."""
        return NodeName(self.metadata.name)
