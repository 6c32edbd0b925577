"""SharePods and their pods, as far as the controller reads and writes them.

Users' `spec` is kept as it is, and parsed into types only to create a pod from it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
from msgspec import field
from msgspec.structs import force_setattr, replace

from partage_plugins.api.keys import ALLOCATION, CARDS
from partage_scheduler.objects.base import ApiObject, Meta, Object

GROUP_VERSION: Final = "kubeshare.nthu/v1"
KIND: Final = "SharePod"
SHAREPODS: Final = f"/apis/{GROUP_VERSION}/sharepods"
PREFIX: Final = "kubeshare/"
GPUID: Final = PREFIX + "GPUID"
GPU_LIMIT: Final = PREFIX + "gpu_limit"
OURS: Final = "partage.dev/sharepod"
"""The label of pods that are created for SharePods; the watch selects by it."""
_ENDED: Final = {
    "Always": frozenset[str](),
    "OnFailure": frozenset(("Succeeded",)),
    "Never": frozenset(("Succeeded", "Failed")),
}
TERMINAL: Final = frozenset(("Succeeded", "Failed"))
MOST_BYTES: Final = 64 << 10
"""Limit on what users write in one object; up to this much of each object is kept in memory."""
_LONGEST_GPUID: Final = 63
_NEEDED: Final = frozenset((ALLOCATION, CARDS))
_TEXT: Final = msgspec.json.Encoder()


class Key(NamedTuple):
    """The namespace and name that a SharePod and its pod share."""

    namespace: str
    name: str


class Owner(Object, frozen=True, kw_only=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class OwnedMeta(Meta, frozen=True, kw_only=True):
    owner_references: tuple[Owner, ...] = ()


class OwnedSpec(Object, frozen=True, kw_only=True):
    node_name: str = ""


class OwnedPod(ApiObject, frozen=True, kw_only=True):
    """A pod with our label, by any creator."""

    metadata: OwnedMeta
    spec: OwnedSpec = OwnedSpec()
    status: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """Keeps only the needed part of oversized metadata, and only the owner of a pod without a SharePod."""
        if not any(owner.controller and owner.kind == KIND for owner in self.metadata.owner_references):
            force_setattr(self, "metadata", replace(self.metadata, annotations={}, labels={}))
            force_setattr(self, "status", {})
        elif len(_TEXT.encode(self.metadata)) > MOST_BYTES:
            notes = {name: text for name, text in self.metadata.annotations.items() if name in _NEEDED}
            labels = {name: text for name, text in self.metadata.labels.items() if name == OURS}
            force_setattr(self, "metadata", replace(self.metadata, annotations=notes, labels=labels))

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended, and holds no card any more."""
        return self.phase in TERMINAL

    @property
    def is_going(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def is_of(self, share: SharePod) -> bool:
        """Whether this SharePod is its controller."""
        return any(owner.controller and owner.uid == share.metadata.uid for owner in self.metadata.owner_references)

    def is_left_of(self, name: str) -> bool:
        """Whether it belongs to a SharePod of this name, even a deleted one; then it will be garbage-collected."""
        owners = self.metadata.owner_references
        return any(owner.controller and (owner.kind, owner.name) == (KIND, name) for owner in owners)


class SharePod(ApiObject, frozen=True, kw_only=True):
    metadata: Meta
    spec: dict[str, Any] = field(default_factory=dict[str, Any])
    status: dict[str, Any] = field(default_factory=dict[str, Any])
    excess: int = 0
    """Size in bytes if it is above the limit; then only node, GPUID and restart policy are kept."""

    def __post_init__(self) -> None:
        said = len(_TEXT.encode((self.metadata, self.spec)))
        if said > MOST_BYTES:
            kept = {GPUID: self.gpuid} if len(self.gpuid) <= _LONGEST_GPUID else {}
            spec = {"nodeName": self.node, "restartPolicy": self.spec.get("restartPolicy", "Always")}
            force_setattr(self, "excess", said)
            force_setattr(self, "metadata", replace(self.metadata, annotations=kept, labels={}))
            force_setattr(self, "spec", spec)

    @property
    def gpuid(self) -> str:
        """Users' own name for a card of its node; empty if it has none."""
        return self.metadata.annotations.get(GPUID, "")

    @property
    def node(self) -> str:
        """As the user wrote it or the controller marked it; empty if neither."""
        said = self.spec.get("nodeName", "")
        return said if isinstance(said, str) else ""

    @property
    def is_going(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def has_ended(self) -> bool:
        """Whether its last pod ended so that its restart policy requires no other one."""
        policy = self.spec.get("restartPolicy", "Always")
        last = self.status.get("PodStatus")
        phase = last.get("phase") if isinstance(last, dict) else None
        return isinstance(policy, str) and phase in _ENDED.get(policy, ())


def key_of(item: SharePod | OwnedPod) -> Key:
    return Key(item.namespace, item.name)
