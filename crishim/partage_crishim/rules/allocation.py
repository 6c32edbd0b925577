"""What a pod's allocation gives to one container, and whether the allocation is valid. Pure.

A pod claims an allocation by its annotation. An allocation that is not signed, or cannot be decoded, refuses every
container of the pod, since it might concern any of them. The signature is checked first, so only a scheduler can make a
node parse an allocation, and the other checks apply to what a scheduler wrote: a user who may write annotations may
write any text. A container that the allocation does not name has no grant. Init containers, sidecars and ephemeral
containers are identified by name, like all others. A container that uses a budget gets the budget's grants.

An unreadable request is left to containerd, unless its bytes name an allocation. Then it is refused: a runtime that
parses it differently must not create a container from it. `may_claim` searches the raw bytes. Strings are contiguous on
the wire, so an annotation that it does not find is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from partage_base.cri.create_request import CreateRequest
from partage_crishim.rules.claimed import may_have_claim
from partage_crishim.rules.errors import AllocationRefused, NodeNotReady
from partage_plugins.api import (
    GPU,
    Allocation,
    ContainerAllocation,
    ContainerName,
    KeyId,
    NodeName,
    PodUid,
)
from partage_plugins.api.allocation import Grants
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import container_key, decode_allocation, decode_raw_grants, verify
from partage_plugins.errors import DecodeError, SignatureRefused

_ALLOCATION_BYTES: Final = ALLOCATION.encode()
_AGAIN: Final = "delete the pod, so that its successor gets an allocation of its own"
_MOST_SIGNATURES: Final = 256
_Decoded = tuple[Allocation, Mapping[ContainerName, Grants]]
_LONGEST_REMEMBERED: Final = 16384
"""The longest text that is cached; no scheduler writes a longer one, which is decoded each time."""


def may_claim(message: bytes) -> bool:
    """Whether a pod in this request can have an allocation, or a container in it a claim."""
    return _ALLOCATION_BYTES in message or may_have_claim(message)


class Signatures:
    """A cache of verified signatures, since each container of a pod carries the same text.

    Each entry holds the key object itself. A key that was removed since is no longer among the keys, and a key that was
    reread is another object, so neither matches an earlier verification.
    """

    def __init__(self) -> None:
        self._good: dict[tuple[str, str], tuple[KeyId, Ed25519PublicKey]] = {}

    def require(self, text: str, signature: str | None, keys: Mapping[KeyId, Ed25519PublicKey]) -> None:
        """Refuse an allocation that none of these keys signed; keys that only verify are among them."""
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
        if len(self._good) >= _MOST_SIGNATURES:
            del self._good[next(iter(self._good))]
        self._good[text, signature] = by, keys[by]


def allocated_to(name: ContainerName, text: str) -> tuple[Allocation, Grants] | None:
    """The pod's allocation, and the grants that it gives to this container, as written; None if it gives it none.

    The signature must have been verified.
    """
    try:
        allocation, by_container = _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _decoded(text)
    except DecodeError as error:
        raise _unreadable(error) from None
    grants = by_container.get(name)
    return (allocation, grants) if grants else None


def record_on(request: CreateRequest, allocation: Allocation, grants: Grants) -> ContainerAllocation:
    """The container's own record; each attempt has another key. Requires an allocation that passed the checks."""
    name = ContainerName(request.container)
    key = container_key(PodUid(request.uid), name, request.attempt)
    return ContainerAllocation(key=key, gen=allocation.gen, grants=grants, budgets=allocation.budgets_of(name))


def require_startable(allocation: Allocation, *, uid: str, node: NodeName) -> None:
    """Refuse a replayed allocation, made for another pod or node, and a suspended pod's: others may have its room."""
    if allocation.pod != uid:
        raise AllocationRefused(f"partage: this pod's allocation was made for another pod; {_AGAIN}")
    if allocation.node != node:
        raise AllocationRefused(f"partage: this pod's allocation was made for another node; {_AGAIN}")
    if allocation.suspended is not None:
        raise NodeNotReady(
            "partage: this pod is suspended for one of a higher priority, which has its room on the card; its "
            "containers start once it is resumed"
        )


def require_not_older(gen: int, floor: int) -> None:
    """Refuse an allocation older than one that this node has acted on for the same pod."""
    if gen < floor:
        raise AllocationRefused(
            f"partage: this pod's allocation is older than one that was in force here before; {_AGAIN}"
        )


def _decoded(text: str) -> _Decoded:
    return decode_allocation(text, (GPU,)), decode_raw_grants(text)


_remembered: Final = lru_cache(maxsize=64)(_decoded)


def _unreadable(error: DecodeError) -> AllocationRefused:
    if error.path == "$.crit":
        return AllocationRefused(
            f"partage: this pod's allocation needs what this node does not know; known are: {error.allowed}"
        )
    return AllocationRefused(
        f"partage: this pod's allocation cannot be read: {error.path} is not what is allowed there: {error.allowed}; "
        f"{_AGAIN}"
    )
