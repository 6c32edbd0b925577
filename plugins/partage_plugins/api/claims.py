"""A ResourceClaim on our devices, as the components on a node see it.

Kubernetes allocates a claim, and kubelet has our driver prepare it before the first container that uses it. On the node
a claim is one budget: all containers to which kubelet gives its CDI device share the claim's grants. The broker serves
it under a key of its own, like a container.
"""

from __future__ import annotations

import hashlib
from typing import Final, NewType

from msgspec import Struct

from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import CardId, ContainerKey, Namespace

ClaimUid = NewType("ClaimUid", str)

DRIVER: Final = "gpu.partage.dev"
CLAIM_KIND: Final = "partage.dev/share"
"""The CDI kind of claims; each device is one claim, named by its uid."""
_DIGITS: Final = 32


class ClaimRef(Struct, frozen=True):
    """A claim as kubelet identifies it."""

    namespace: Namespace
    name: str
    uid: ClaimUid


class ClaimDevice(Struct, frozen=True, kw_only=True):
    """One device that was allocated to a claim, with the names by which kubelet knows it."""

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
    """The claim's grants, one for each share; empty for a claim with `adminAccess`, which only monitors."""
    cdi: tuple[str, ...]
    """The CDI devices that kubelet gives to each of its containers."""
    places: tuple[str, ...] = ()
    """Paths in each of its containers at which the CDI devices add something."""
    is_released: bool = False
    """kubelet has unprepared it; the record remains until no container has its device."""


def claim_key(uid: ClaimUid) -> ContainerKey:
    """The key under which the broker serves a claim; it can't equal a container's, which is made from three parts."""
    return ContainerKey(hashlib.sha256(f"claim/{uid}".encode()).hexdigest()[:_DIGITS])


def claim_device(uid: ClaimUid) -> str:
    """The CDI device that applies a claim's limits to a container."""
    return f"{CLAIM_KIND}={uid}"


def claimed_by(device: str) -> ClaimUid | None:
    """The claim of a CDI device; None for a device of another kind."""
    kind, _, name = device.partition("=")
    return ClaimUid(name) if kind == CLAIM_KIND and name else None
