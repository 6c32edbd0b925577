"""A ResourceClaim on our devices, as the parts of a node know it.

Kubernetes allocates a claim, and kubelet has our driver prepare it before the first container that uses it. On the node
a claim is one budget: every container that kubelet gives its CDI device has what the claim has, together with the
others. The broker serves it under a key as it serves a container.
"""

from __future__ import annotations

import hashlib
from typing import Final, NewType

from msgspec import Struct

from partage_plugins.vocabulary.gpu import GpuGrant
from partage_plugins.vocabulary.names import CardId, ContainerKey, Namespace

ClaimUid = NewType("ClaimUid", str)

DRIVER: Final = "gpu.partage.dev"
CLAIM_KIND: Final = "partage.dev/share"
"""Of CDI: its devices are claims, named by their uids."""
_DIGITS: Final = 32


class ClaimRef(Struct, frozen=True):
    """As kubelet names a claim."""

    namespace: Namespace
    name: str
    uid: ClaimUid


class ClaimDevice(Struct, frozen=True, kw_only=True):
    """One device that was allocated to a claim, by the names that kubelet knows it by."""

    request: str
    pool: str
    device: str
    card: CardId
    share_id: str | None = None


class ClaimRecord(Struct, frozen=True, kw_only=True):
    v: int = 1
    claim: ClaimRef
    devices: tuple[ClaimDevice, ...]
    grants: tuple[GpuGrant, ...]
    """What it may have, one for each share; none for a claim that only looks on (`adminAccess`)."""
    cdi: tuple[str, ...]
    """The CDI devices that kubelet gives each of its containers."""
    places: tuple[str, ...] = ()
    """Paths in each of its containers at which they put something."""
    is_released: bool = False
    """kubelet has let go of it; it stands until no container has its device."""


def claim_key(uid: ClaimUid) -> ContainerKey:
    """Under which the broker serves it. No container's: those are made of three words."""
    return ContainerKey(hashlib.sha256(f"claim/{uid}".encode()).hexdigest()[:_DIGITS])


def claim_device(uid: ClaimUid) -> str:
    """The CDI device that brings a claim's limits into a container."""
    return f"{CLAIM_KIND}={uid}"


def claimed_by(device: str) -> ClaimUid | None:
    """The claim that a CDI device brings; None of a device of another kind."""
    kind, _, name = device.partition("=")
    return ClaimUid(name) if kind == CLAIM_KIND and name else None
