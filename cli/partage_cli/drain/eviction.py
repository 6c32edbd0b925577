"""A node's pods as an eviction sees them: owner, whether they leave at all, and their replacement. Pure.

The scheduler keeps only the fields of a bound pod that count there, so the replacement is built from the full object.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from partage_plugins.api.keys import ALLOC_PREFIX
from partage_scheduler.objects import ApiPod
from partage_scheduler.objects.base import ApiObject, Meta, Object
from partage_scheduler.objects.specs import PodSpec

_MIRROR: Final = "kubernetes.io/config.mirror"
_HASH: Final = "pod-template-hash"


class PodOwner(Object, frozen=True, kw_only=True):
    kind: str
    name: str
    controller: bool = False


class OwnedMeta(Meta, frozen=True, kw_only=True):
    owner_references: tuple[PodOwner, ...] = ()


class NodePod(ApiObject, frozen=True, kw_only=True):
    """A pod on the node, with all of its annotations and its owner references."""

    metadata: OwnedMeta
    spec: PodSpec = PodSpec()

    @property
    def owner(self) -> str:
        """The owner, such as `Deployment/web`; empty if no controller recreates the pod."""
        found = self._controller
        if found is None:
            return ""
        suffix = f"-{self.metadata.labels.get(_HASH, '')}"
        if found.kind == "ReplicaSet" and suffix != "-" and found.name.endswith(suffix):
            return f"Deployment/{found.name.removesuffix(suffix)}"
        return f"{found.kind}/{found.name}"

    @property
    def why_stays(self) -> str:
        """Why `kubectl drain` skips the pod; empty if it evicts the pod."""
        if _MIRROR in self.metadata.annotations:
            return "it is a static pod of the node"
        found = self._controller
        return "its DaemonSet ignores that a node is drained" if found and found.kind == "DaemonSet" else ""

    @property
    def _controller(self) -> PodOwner | None:
        return next((each for each in self.metadata.owner_references if each.controller), None)

    def successor(self, scheduler_name: str) -> ApiPod:
        """The pod recreated for this scheduler: unbound, and without an allocation."""
        meta = self.metadata
        notes = {key: text for key, text in meta.annotations.items() if not key.startswith(ALLOC_PREFIX)}
        return ApiPod(
            metadata=Meta(
                name=meta.name,
                namespace=meta.namespace,
                uid=f"{meta.uid}/again",
                creation_timestamp=meta.creation_timestamp,
                labels=meta.labels,
                annotations=notes,
            ),
            spec=replace(self.spec, node_name="", scheduler_name=scheduler_name),
        )
