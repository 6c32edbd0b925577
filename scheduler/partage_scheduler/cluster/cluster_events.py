"""Cluster events that may make a pending pod schedulable."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ClusterEvent(Enum):
    NODE = "node"
    """A node was added or changed, or its heartbeat is back."""
    INVENTORY = "inventory"
    """The devices of a node changed."""
    FREED = "freed"
    """A pod left a node, or holds less."""
    POD = "pod"
    """A pod was added to a node, or its labels changed."""
    VOLUME = "volume"
    """A volume, a PersistentVolumeClaim, a StorageClass or a CSINode was added or changed."""
    CLAIM = "claim"
    """A ResourceClaim or a DeviceClass was added or changed."""
    NAMESPACE = "namespace"
    """A namespace or a ResourceQuota was added or changed."""
    TIME = "time"
    """Only time has passed: what failed may succeed next time."""


NOTHING: Final[frozenset[ClusterEvent]] = frozenset()
"""No event that could help a pending pod."""
