"""What the cluster tells predicates: the part of `predicates.Predicates` that it needs, as a protocol."""

from __future__ import annotations

from typing import Protocol

from partage_plugins.vocabulary import PodUid, Slot
from partage_scheduler.objects import ApiNode, ApiPod


class Rules(Protocol):
    """Who counts what is on nodes beside CPU, memory and devices."""

    def put_node(self, slot: Slot, node: ApiNode) -> None:
        """The node in this slot, as it is now."""
        ...

    def remove_node(self, slot: Slot) -> None:
        """It is gone; its pods were removed before."""
        ...

    def put_pod(self, slot: Slot, pod: ApiPod) -> None:
        """A pod on that node, as it is now."""
        ...

    def remove_pod(self, uid: PodUid) -> None:
        """It is on no node any more."""
        ...
