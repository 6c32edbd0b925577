"""The allocation on a pod, the grants on a container (contracts 1 and 3), and the version to write.

The raw text of an allocation is signed, so it needs no canonical form: decode the text that was verified, and never
re-encode it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from partage_plugins.api.allocation import Allocation, ContainerAllocation, Grants, SuspendedFor
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.limits import MAX_CARDS, MAX_CONTAINERS, MAX_KINDS, Generation
from partage_plugins.api.names import (
    BudgetName,
    BudgetNameText,
    ContainerKey,
    ContainerKeyText,
    ContainerName,
    ContainerNameText,
    Kind,
    KindText,
    NodeName,
    NodeNameText,
    PodUid,
    PodUidText,
    ShortText,
)
from partage_plugins.api.pods import Gang
from partage_plugins.codecs import budgets
from partage_plugins.codecs.critical import CRIT, SUSPENDED
from partage_plugins.codecs.decoder import Reader, fitting
from partage_plugins.codecs.parts import read_parts
from partage_plugins.errors import DecodeError

WHAT: Final = "allocation"
WHAT_ON_CONTAINER: Final = "container annotation"
VERSIONS: Final = (1,)
"""Versions of the allocation format that this release reads and writes."""

_RawGrants = Annotated[dict[KindText, msgspec.Raw], Meta(max_length=MAX_KINDS)]


class _Envelope(Struct, frozen=True):
    v: Literal[1]
    gen: Generation
    pod: PodUidText
    node: NodeNameText
    containers: Annotated[dict[ContainerNameText, _RawGrants], Meta(max_length=MAX_CONTAINERS)]
    crit: Annotated[tuple[ShortText, ...], Meta(max_length=64)] = ()
    budgets: Annotated[dict[BudgetNameText, _RawGrants], Meta(max_length=MAX_CONTAINERS)] = {}
    gang: Gang | None = None
    suspended: SuspendedFor | None = None


class _Written(Struct, frozen=True):
    """An allocation as it is encoded; fields that are not set leave the text as it was before they existed."""

    v: int
    gen: int
    crit: tuple[str, ...]
    pod: PodUid
    node: NodeName
    containers: Mapping[ContainerName, Grants]
    budgets: Mapping[BudgetName, Grants] | UnsetType = UNSET
    gang: Gang | UnsetType = UNSET
    suspended: SuspendedFor | UnsetType = UNSET


class _ContainerEnvelope(Struct, frozen=True):
    v: Literal[1]
    key: ContainerKeyText
    gen: Generation
    grants: _RawGrants
    budgets: Annotated[dict[KindText, BudgetNameText], Meta(max_length=MAX_KINDS)] = {}


class _ContainerWritten(Struct, frozen=True):
    v: int
    key: ContainerKey
    gen: int
    grants: Grants
    budgets: Mapping[Kind, BudgetName] | UnsetType = UNSET


_ENVELOPE: Final = Reader(WHAT, _Envelope)
_CONTAINER: Final = Reader(WHAT_ON_CONTAINER, _ContainerEnvelope)
_BLANKS: Final = b" \t\r\n"
_NOTHING: Final = frozenset((b"[]", b"{}", b"null"))
"""Encodings of "no grants", for any kind."""
_OWN_FIELDS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(_Envelope))


def decode_allocation(raw: str | bytes, kinds: Iterable[AnyKind]) -> Allocation:
    """The allocation, with the grants of `kinds` typed; refused if this reader does not know a critical field."""
    kinds = tuple(kinds)
    envelope = _ENVELOPE.read(raw)
    if envelope.crit:
        _refuse_unknown(envelope.crit, kinds)
    types = _grant_types(kinds)
    counted, uses = budgets.joined(envelope.containers, envelope.budgets)
    containers = {name: read_parts(WHAT, grants, types, at=budgets.place_of(name)) for name, grants in counted.items()}
    follow = {budgets.FIELD: bool(envelope.budgets), SUSPENDED: envelope.suspended is not None}
    crit = tuple(name for name in envelope.crit if not follow.get(name))
    return Allocation(
        gen=envelope.gen,
        crit=crit,
        pod=envelope.pod,
        node=envelope.node,
        containers=containers,
        uses=uses,
        gang=envelope.gang,
        suspended=envelope.suspended,
    )


def decode_raw_grants(raw: str | bytes) -> Mapping[ContainerName, Mapping[Kind, msgspec.Raw]]:
    """The grants that each container may use, its own and those of its budgets, without decoding any kind.

    So fields and kinds that this reader does not know are preserved. Kinds of which a container has none are left out.
    """
    envelope = _ENVELOPE.read(raw)
    counted, uses = budgets.joined(envelope.containers, envelope.budgets)
    given = {name: dict(counted.get(name, {})) for name in envelope.containers}
    for use in uses:
        given[use.container][use.kind] = envelope.budgets[use.budget][use.kind]
    return {
        name: {kind: raw.copy() for kind, raw in mine.items() if not _is_nothing(raw)} for name, mine in given.items()
    }


def encode_allocation(allocation: Allocation) -> str:
    """The text to sign and to write on the pod. Refused if it is larger than an annotation may be."""
    containers, shared = budgets.parted(allocation.containers, allocation.uses)
    written = _Written(
        v=allocation.v,
        gen=allocation.gen,
        crit=(*allocation.crit, *([budgets.FIELD] if shared else ()), *([SUSPENDED] if allocation.suspended else ())),
        pod=allocation.pod,
        node=allocation.node,
        containers=containers,
        budgets=shared or UNSET,
        gang=allocation.gang or UNSET,
        suspended=allocation.suspended or UNSET,
    )
    return fitting(msgspec.json.encode(written, order="deterministic"), WHAT).decode()


def decode_grants(raw: Mapping[Kind, msgspec.Raw], kinds: Iterable[AnyKind]) -> Grants:
    """Decodes one container's grants that were passed between processes as raw JSON."""
    return read_parts(WHAT, raw, _grant_types(kinds), at="$")


def decode_container(raw: str | bytes, kinds: Iterable[AnyKind]) -> ContainerAllocation:
    """Decodes the annotation on a container of the runtime."""
    envelope = _CONTAINER.read(raw)
    grants = read_parts(WHAT_ON_CONTAINER, envelope.grants, _grant_types(kinds), at="$.grants")
    return ContainerAllocation(key=envelope.key, gen=envelope.gen, grants=grants, budgets=envelope.budgets)


def encode_container(container: ContainerAllocation) -> str:
    """The text to write on a container. Refused if it is larger than an annotation may be."""
    written = _ContainerWritten(
        v=container.v,
        key=container.key,
        gen=container.gen,
        grants=container.grants,
        budgets=container.budgets or UNSET,
    )
    return fitting(msgspec.json.encode(written, order="deterministic"), WHAT_ON_CONTAINER).decode()


@lru_cache(maxsize=256)
def container_key(pod: PodUid, container: ContainerName, attempt: int) -> ContainerKey:
    """The name of a container before the runtime has assigned an id."""
    return ContainerKey(hashlib.sha256(f"{pod}/{container}/{attempt}".encode()).hexdigest()[:32])


def highest_common_version(theirs: Iterable[int], ours: Iterable[int] = VERSIONS) -> int | None:
    """The version to write for a reader that supports `theirs`; None if there is no common version."""
    return max(set(theirs) & set(ours), default=None)


def _is_nothing(given: msgspec.Raw) -> bool:
    return bytes(given).translate(None, _BLANKS) in _NOTHING


def _grant_types(kinds: Iterable[AnyKind]) -> dict[Kind, Any]:
    return {kind.name: _grants_of(kind) for kind in kinds}


@cache
def _grants_of(kind: AnyKind) -> Any:  # noqa: ANN401  a type made from a type
    grant: Any = kind.grant
    return Annotated[tuple[grant, ...], Meta(max_length=MAX_CARDS)]


def _refuse_unknown(crit: tuple[str, ...], kinds: tuple[AnyKind, ...]) -> None:
    known = _OWN_FIELDS.union(CRIT).union(
        f"{kind.name}.{field.encode_name}" for kind in kinds for field in msgspec.structs.fields(kind.grant)
    )
    for name in crit:
        if name not in known:
            raise DecodeError(
                WHAT,
                path="$.crit",
                value=f"{name!r}, which this reader does not know",
                allowed=", ".join(sorted(known)) + "; upgrade partage on this node",
            )
