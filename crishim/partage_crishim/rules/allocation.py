"""What a pod's allocation says of one container, and whether it is to be believed. Pure.

A pod claims an allocation by its annotation. An allocation that is not signed, or cannot be decoded, refuses every
container of the pod: it might mean any of them. The signature is checked first, so only a scheduler can make a node
parse, and the other checks are about what a scheduler wrote: a user who may write annotations may write any. A
container that the allocation does not name has no grant. Init containers, sidecars and ephemeral containers are known
by their names, like all others. A container that uses a budget is given what the budget was granted.

containerd answers a request that cannot be read, unless its bytes name an allocation. Such a request is refused: a
runtime that reads it differently must not create a container from it. `may_claim` looks at the bytes. Text stands in
one piece on the wire, so what it does not find is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct

from partage_base.cri.create_request import CreateRequest
from partage_crishim.rules.claimed import may_have_claim
from partage_crishim.rules.errors import AllocationRefused
from partage_plugins.codecs import RawGrants, container_key, decode_allocation, decode_raw_grants, verify
from partage_plugins.errors import DecodeError, SignatureRefused
from partage_plugins.vocabulary import (
    GPU,
    Allocation,
    ContainerAllocation,
    ContainerName,
    GpuGrant,
    KeyId,
    NodeName,
    PodUid,
)
from partage_plugins.vocabulary.keys import ALLOCATION

_ALLOCATION_BYTES: Final = ALLOCATION.encode()
_AGAIN: Final = "delete the pod, so that its successor gets an allocation of its own"
_MOST_SIGNATURES: Final = 256
_Decoded = tuple[Allocation, Mapping[ContainerName, RawGrants]]
_LONGEST_REMEMBERED: Final = 16384
"""Of a text; one that no scheduler writes is read each time."""


class Claim(Struct, frozen=True, kw_only=True):
    """What an allocation gives this container."""

    allocation: Allocation
    given: RawGrants
    """As it was written: kinds and fields that we do not know are kept."""
    cards: tuple[GpuGrant, ...]
    """Those of the kind that is counted here."""

    def record_on(self, request: CreateRequest) -> ContainerAllocation:
        """What the container will carry; each attempt at it has another key. It was found to be meant."""
        key = container_key(PodUid(request.uid), ContainerName(request.container), request.attempt)
        given = self.given
        return ContainerAllocation(key=key, gen=self.allocation.gen, grants=given.grants, budgets=given.budgets)


def may_claim(message: bytes) -> bool:
    """Whether a pod in this request can have an allocation, or a container in it a claim."""
    return _ALLOCATION_BYTES in message or may_have_claim(message)


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
        if len(self._good) >= _MOST_SIGNATURES:
            del self._good[next(iter(self._good))]
        self._good[text, signature] = by, keys[by]


def claim_of(request: CreateRequest) -> Claim | None:
    """What the pod's allocation gives this container; None where it gives nothing. Its signature was found good."""
    text = request.annotations.get(ALLOCATION)
    if text is None:
        return None
    try:
        allocation, by_container = _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _decoded(text)
    except DecodeError as error:
        raise _unreadable(error) from None
    name = ContainerName(request.container)
    given = by_container.get(name)
    if given is None or not given.grants:
        return None
    return Claim(allocation=allocation, given=given, cards=allocation.given(name, GPU))


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
