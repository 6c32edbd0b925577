"""Whether an allocation is the scheduler's, for this pod on this node, and not older than one seen before. Pure.

Who may write annotations may write any: everything that follows from an allocation rests on these checks. The signature
comes first, so that the others speak of what a scheduler said and not of what somebody typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_crishim.deciding.claims import Claim
from partage_crishim.deciding.errors import AllocationRefused
from partage_plugins.codecs import verify
from partage_plugins.errors import SignatureRefused
from partage_plugins.vocabulary import KeyId, NodeName

_ANEW: Final = "delete the pod, so that its successor gets an allocation of its own"


def require_signed(claim: Claim, keys: Mapping[KeyId, Ed25519PublicKey]) -> None:
    """Refuses an allocation that none of these keys signed; keys that verify only are among them."""
    if claim.signature is None:
        raise AllocationRefused(
            "partage: this pod's allocation has no signature; only the scheduler may write alloc.partage.dev/ "
            f"annotations: {_ANEW}"
        )
    try:
        verify(claim.text, claim.signature, keys)
    except SignatureRefused as error:
        raise AllocationRefused(str(error)) from None


def require_meant(claim: Claim, *, uid: str, node: NodeName) -> None:
    """Refuses an allocation that was made for another pod or node: a replayed one."""
    if claim.allocation.pod != uid:
        raise AllocationRefused(f"partage: this pod's allocation was made for another pod; {_ANEW}")
    if claim.allocation.node != node:
        raise AllocationRefused(f"partage: this pod's allocation was made for another node; {_ANEW}")


def require_not_older(gen: int, floor: int) -> None:
    """Refuses an allocation that is older than one which this node has acted on for the same pod."""
    if gen < floor:
        raise AllocationRefused(
            f"partage: this pod's allocation is older than one that was in force here before; {_ANEW}"
        )
