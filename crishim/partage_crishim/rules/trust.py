"""Whether an allocation is the scheduler's, for this pod on this node, and not older than one seen before. Pure.

A user who may write annotations may write any, so everything that follows from an allocation rests on these checks. The
signature comes first, so the other checks are about what a scheduler wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_crishim.rules.allocation import Claim
from partage_crishim.rules.errors import AllocationRefused
from partage_plugins.codecs import verify
from partage_plugins.errors import SignatureRefused
from partage_plugins.vocabulary import KeyId, NodeName

_AGAIN: Final = "delete the pod, so that its successor gets an allocation of its own"
_REMEMBERED: Final = 256


class Signatures:
    """Signatures that were found good: a pod's text comes with each of its containers.

    Each is remembered with the key itself. A key that was removed since is not among the keys, and one that was read
    again is another object, so neither stands for what was verified before.
    """

    def __init__(self) -> None:
        self._good: dict[tuple[str, str], tuple[KeyId, Ed25519PublicKey]] = {}

    def require(self, text: str, signature: str | None, keys: Mapping[KeyId, Ed25519PublicKey]) -> None:
        """Refuses an allocation that none of these keys signed; keys that verify only are among them."""
        if signature is None:
            raise AllocationRefused(
                "partage: this pod's allocation has no signature; only the scheduler may write alloc.partage.dev/ "
                f"annotations: {_AGAIN}"
            )
        known = self._good.get((text, signature))
        if known is not None and keys.get(known[0]) is known[1]:
            return
        try:
            by = verify(text, signature, keys)
        except SignatureRefused as error:
            raise AllocationRefused(str(error)) from None
        if len(self._good) >= _REMEMBERED:
            del self._good[next(iter(self._good))]
        self._good[text, signature] = by, keys[by]


def require_meant(claim: Claim, *, uid: str, node: NodeName) -> None:
    """Refuses an allocation that was made for another pod or node: a replayed one."""
    if claim.allocation.pod != uid:
        raise AllocationRefused(f"partage: this pod's allocation was made for another pod; {_AGAIN}")
    if claim.allocation.node != node:
        raise AllocationRefused(f"partage: this pod's allocation was made for another node; {_AGAIN}")


def require_not_older(gen: int, floor: int) -> None:
    """Refuses an allocation that is older than one which this node has acted on for the same pod."""
    if gen < floor:
        raise AllocationRefused(
            f"partage: this pod's allocation is older than one that was in force here before; {_AGAIN}"
        )
