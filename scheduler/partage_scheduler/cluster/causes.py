"""Why a pod that waits may fit now."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Cause(Enum):
    NODE = "node"
    """A node came, changed, or is heard of again."""
    INVENTORY = "inventory"
    """A node has other devices than before."""
    FREED = "freed"
    """A pod left a node, or holds less."""
    POD = "pod"
    """A pod came to a node, or has other labels."""
    VOLUME = "volume"
    """A volume or a claim came or changed."""
    CLAIM = "claim"
    """A claim on devices, or a class of them, came or changed."""
    NAMESPACE = "namespace"
    """A namespace came or has other labels."""
    TIME = "time"
    """Nothing but time: what went wrong may go right next time."""


NOTHING: Final[frozenset[Cause]] = frozenset()
"""Nothing that concerns anybody."""
