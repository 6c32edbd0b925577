"""A small cluster, and shorthands that tell where a pod can run."""

from __future__ import annotations

from partage_plugins.api import PodUid, Slot
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.predicates import Predicates
from partage_scheduler.predicates.predicates import OURS


class World:
    """Predicates over nodes addressed by name."""

    def __init__(self, *nodes: ApiNode, ours: tuple[str, ...] = OURS) -> None:
        self.predicates = Predicates(ours=ours)
        self.slots: dict[str, int] = {}
        for each in nodes:
            self.put(each)

    def put(self, node: ApiNode) -> None:
        free = next(slot for slot in range(len(self.slots) + 1) if slot not in self.slots.values())
        slot = self.slots.setdefault(node.name, free)
        self.predicates.put_node(Slot(slot), node)

    def on(self, node: str, *pods: ApiPod) -> None:
        for each in pods:
            self.predicates.put_pod(Slot(self.slots[node]), each)

    def off(self, name: str) -> None:
        self.predicates.remove_pod(PodUid(f"uid-{name}"))

    def remove(self, node: str) -> None:
        self.predicates.remove_node(Slot(self.slots.pop(node)))

    def where(self, pod: ApiPod) -> str:
        """The names of the nodes on which the pod can run."""
        return " ".join(name for name in self.slots if name not in self.why(pod))

    def why(self, pod: ApiPod) -> dict[str, str]:
        """The first reason for each node on which the pod can't run."""
        end = max(self.slots.values(), default=-1) + 1
        found: dict[str, str] = {}
        for each in self.predicates.barred(pod, end):
            flags = each.flags(end)
            for name, slot in self.slots.items():
                if flags[slot]:
                    found.setdefault(name, str(each.reason))
        return found

    def liked(self, pod: ApiPod) -> dict[str, float] | None:
        """The preference of each node."""
        scores = self.predicates.preferences(pod, len(self.slots))
        return None if scores is None else {name: float(scores[slot]) for name, slot in self.slots.items()}
