"""Rules for containers with a claim of our DRA driver. Pure.

kubelet names the claim by a CDI device, which no user can write. The limits come with the device: crishim adds nothing,
and only checks whether they can hold. A container has at most one claim, since it has one place for a claim's socket
and library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partage_base.cri.create_request import CreateRequest
from partage_crishim.rules.errors import ClaimRefused, not_prepared
from partage_plugins.api.claims import CLAIM_KIND, ClaimRecord, ClaimUid, claimed_by

_CLAIM_BYTES: Final = f"{CLAIM_KIND}=".encode()
_OURS: Final = "partage.dev/"


def may_have_claim(message: bytes) -> bool:
    """Whether a container in this request can have a claim."""
    return _CLAIM_BYTES in message


def claims_in(devices: Iterable[str]) -> tuple[ClaimUid, ...]:
    """The claims that CDI devices refer to, without duplicates."""
    return tuple(dict.fromkeys(uid for uid in map(claimed_by, devices) if uid is not None))


def the_claim(request: CreateRequest, *, is_granted: bool) -> ClaimUid | None:
    """The container's claim; refuses several, and one beside a grant."""
    claims = claims_in(request.cdi)
    if len(claims) > 1:
        raise ClaimRefused(
            f"partage: the container has {len(claims)} claims of gpu.partage.dev; allowed: one. Ask for all its cards "
            "by requests of one claim"
        )
    if claims and is_granted:
        raise ClaimRefused(
            "partage: the container has a claim of gpu.partage.dev and an allocation of partage's scheduler; ask for "
            "cards in one way"
        )
    return next(iter(claims), None)


def require_prepared(request: CreateRequest, uid: ClaimUid, record: ClaimRecord | None) -> None:
    """Refuse a claim, or a partage device beside it, that this node's driver did not prepare."""
    if record is None:
        raise not_prepared(uid)
    for device in request.cdi:
        if device.startswith(_OURS) and device not in record.cdi:
            raise ClaimRefused(
                f"partage: CDI device {device!a:.200} is not of claim {record.claim.name}; delete the pod to have it "
                "made again"
            )
