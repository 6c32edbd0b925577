"""What a pod's allocation says of one container. Pure.

A pod claims an allocation by its annotation. An allocation that is not signed, or cannot be decoded, refuses every
container of the pod: it might mean any of them. The signature is checked first, so only a scheduler can make a node
parse. A container that the allocation does not name has no grant. Init containers, sidecars and ephemeral containers
are known by their names, like all others. A container that uses a budget is given what the budget was granted.

containerd answers a request that cannot be read, unless its bytes name an allocation. Such a request is refused: a
runtime that reads it differently must not create a container from it. `may_claim` looks at the bytes. Text stands in
one piece on the wire, so what it does not find is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from partage_base.cri.create_request import CreateRequest
from partage_crishim.rules.claimed import may_have_claim
from partage_crishim.rules.errors import AllocationRefused
from partage_plugins.codecs import RawGrants, decode_allocation, decode_raw_grants
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU, Allocation, BudgetName, ContainerName, GpuGrant, Kind
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE

_ALLOCATION_BYTES: Final = ALLOCATION.encode()


_Decoded = tuple[Allocation, Mapping[ContainerName, RawGrants]]
_LONGEST_REMEMBERED: Final = 16384
"""Of a text; one that no scheduler writes is read each time."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation that names this container; whether it was made for this pod and node is `trust`'s to say."""

    text: str
    signature: str | None
    allocation: Allocation
    raw: Mapping[Kind, msgspec.Raw]
    """What this container may use, as it was written: kinds and fields that we do not know are kept."""
    budgets: Mapping[Kind, BudgetName]
    """The kinds of which that is a budget's, which other containers of the pod may use, too."""
    cards: tuple[GpuGrant, ...]
    """Those of the kind that is counted here."""


def may_claim(message: bytes) -> bool:
    """Whether a pod in this request can have an allocation, or a container in it a claim."""
    return _ALLOCATION_BYTES in message or may_have_claim(message)


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
    return Claim(
        text=text,
        signature=request.annotations.get(SIGNATURE),
        allocation=allocation,
        raw=given.grants,
        budgets=given.budgets,
        cards=allocation.given(name, GPU),
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
        "delete the pod, so that its successor gets an allocation of its own"
    )
