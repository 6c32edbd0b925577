"""What a pod was given (its allocation), and what one container carries of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from partage_plugins.vocabulary.inventory import not_decoded
from partage_plugins.vocabulary.kinds import GrantT, KindType, PartT, RequestT
from partage_plugins.vocabulary.names import ContainerKey, ContainerName, Kind, NodeName, PodUid

Grants = Mapping[Kind, object]
"""One container's grants by kind: a tuple of the owner's grant type, or raw JSON where the reader has no owner."""


def typed_grants(grants: Grants, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
    """The grants of `kind` among grants that were decoded with its type; empty where there are none."""
    mine: Any = grants.get(kind.name, ())
    if isinstance(mine, tuple):
        return mine  # checked by the decoder, element by element
    raise not_decoded("allocation", kind)


class Allocation(Struct, frozen=True, kw_only=True):
    """A pod's grants on a node. `gen` only grows: an older, larger allocation cannot be replayed on the same pod."""

    v: Literal[1] = 1
    gen: int
    crit: tuple[str, ...] = ()
    """Fields that a reader must know or refuse: names of this type's fields, or `kind.field` of a grant's."""
    pod: PodUid
    node: NodeName
    containers: Mapping[ContainerName, Grants]

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> dict[ContainerName, tuple[GrantT, ...]]:
        """The grants of this kind, by container."""
        found = ((name, typed_grants(grants, kind)) for name, grants in self.containers.items())
        return {name: grants for name, grants in found if grants}


class ContainerAllocation(Struct, frozen=True, kw_only=True):
    """What crishim writes on a container that it rewrote: who it is and what it was given."""

    v: Literal[1] = 1
    key: ContainerKey
    gen: int
    grants: Grants

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
        """The grants of this kind."""
        return typed_grants(self.grants, kind)
