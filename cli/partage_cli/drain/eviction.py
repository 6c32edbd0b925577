"""Pods of a node as an eviction sees them: what made them, whether they leave at all, and what comes after them. Pure.

The scheduler keeps of a pod on a node only what counts there, so its successor is made from the pod as it was written.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from partage_plugins.vocabulary.keys import ALLOC_PREFIX
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
    """A pod on the node, with all of its annotations and its owners."""

    metadata: OwnedMeta
    spec: PodSpec = PodSpec()

    @property
    def owner(self) -> str:
        """As `Deployment/web`; empty where nothing makes the pod again."""
        found = self._controller
        if found is None:
            return ""
        suffix = f"-{self.metadata.labels.get(_HASH, '')}"
        if found.kind == "ReplicaSet" and suffix != "-" and found.name.endswith(suffix):
            return f"Deployment/{found.name.removesuffix(suffix)}"
        return f"{found.kind}/{found.name}"

    @property
    def why_stays(self) -> str:
        """Why `kubectl drain` leaves it where it is; empty where it evicts the pod."""
        if _MIRROR in self.metadata.annotations:
            return "it is a static pod of the node"
        found = self._controller
        return "its DaemonSet ignores that a node is drained" if found and found.kind == "DaemonSet" else ""

    @property
    def _controller(self) -> PodOwner | None:
        return next((each for each in self.metadata.owner_references if each.controller), None)

    def successor(self, scheduler_name: str) -> ApiPod:
        """The same pod made again, for this scheduler: on no node, and with nothing allocated."""
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
