"""Identifiers and their syntax, defined once for every type and codec.

A `NewType` keeps a pod's uid from being passed where a card's id belongs; the `…Text` twin is the same type with the
constraint that decoders enforce. `IN_WORDS` describes each pattern for error messages.
"""

from __future__ import annotations

from typing import Annotated, Final, NewType

from msgspec import Meta

NodeName = NewType("NodeName", str)
Namespace = NewType("Namespace", str)
PodName = NewType("PodName", str)
PodUid = NewType("PodUid", str)
ContainerName = NewType("ContainerName", str)
BudgetName = NewType("BudgetName", str)
ContainerKey = NewType("ContainerKey", str)
CardId = NewType("CardId", str)
Kind = NewType("Kind", str)
KeyId = NewType("KeyId", str)
PluginName = NewType("PluginName", str)
Slot = NewType("Slot", int)
"""A node's number in the scheduler: small, and reused after the node is gone."""

_SUBDOMAIN: Final = r"\A[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z"
_LABEL: Final = r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z"
_UID: Final = r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\Z"
_CARD: Final = r"\A[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z"
_KIND: Final = r"\A[a-z][a-z0-9-]{0,30}\Z"
_HEX32: Final = r"\A[0-9a-f]{32}\Z"
_TAG: Final = r"\A[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z"
_PRINTABLE: Final = r"\A[^\x00-\x1f\x7f]{1,128}\Z"

IN_WORDS: Final = {
    _SUBDOMAIN: "a DNS name: lower-case letters, digits, - and ., at most 253",
    _LABEL: "a DNS label: lower-case letters, digits and -, at most 63",
    _UID: "a uid: letters, digits, -, _ and ., at most 128",
    _CARD: "a card id: letters, digits and . _ : / -, at most 128",
    _KIND: "a kind: lower-case letters, digits and -, at most 31",
    _HEX32: "32 lower-case hex digits",
    _TAG: "a label value: letters, digits, -, _ and ., at most 63",
    _PRINTABLE: "1 to 128 printable characters",
}

NodeNameText = Annotated[NodeName, Meta(pattern=_SUBDOMAIN)]
NamespaceText = Annotated[Namespace, Meta(pattern=_LABEL)]
PodUidText = Annotated[PodUid, Meta(pattern=_UID)]
ContainerNameText = Annotated[ContainerName, Meta(pattern=_LABEL)]
BudgetNameText = Annotated[BudgetName, Meta(pattern=_LABEL)]
ContainerKeyText = Annotated[ContainerKey, Meta(pattern=_HEX32)]
CardIdText = Annotated[CardId, Meta(pattern=_CARD)]
KindText = Annotated[Kind, Meta(pattern=_KIND)]
TagText = Annotated[str, Meta(pattern=_TAG)]
ShortText = Annotated[str, Meta(pattern=_PRINTABLE)]

KIND_PATTERN: Final = _KIND
TAG_PATTERN: Final = _TAG
CARD_ID_PATTERN: Final = _CARD
CONTAINER_NAME_PATTERN: Final = _LABEL

_BUDGET: Final = "budget/"
"""Can't clash with a container's name, which has no slash."""
_CLAIM: Final = "claim/"


def grantee_of(budget: BudgetName) -> ContainerName:
    """The name under which a budget is listed among containers, where requests and grants are counted."""
    return ContainerName(_BUDGET + budget)


def budget_of(grantee: ContainerName) -> BudgetName | None:
    """The budget that this name stands for; None for a container."""
    return BudgetName(grantee.removeprefix(_BUDGET)) if grantee.startswith(_BUDGET) else None


def claim_grantee(claim: str, request: str) -> ContainerName:
    """The name there of one request of a pod's claim; `claim` is the name that the pod has for the claim."""
    return ContainerName(f"{_CLAIM}{claim}/{request}")


def claim_of(grantee: ContainerName) -> tuple[str, str] | None:
    """The claim and request that this name stands for; None for a container or a budget."""
    if not grantee.startswith(_CLAIM):
        return None
    claim, _, request = grantee.removeprefix(_CLAIM).partition("/")
    return claim, request


def grantee_in_words(grantee: ContainerName) -> str:
    """The form used in messages: `container main`, `budget pod`, or `request gpu of claim train`."""
    budget, claim = budget_of(grantee), claim_of(grantee)
    if claim is not None:
        return f"request {claim[1]} of claim {claim[0]}"
    return f"container {grantee}" if budget is None else f"budget {budget}"
