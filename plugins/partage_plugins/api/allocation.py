"""A pod's allocation, and the part of it that is written on each container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from partage_plugins.api.inventory import not_decoded
from partage_plugins.api.kinds import GrantT, KindType, PartT, RequestT
from partage_plugins.api.names import (
    BudgetName,
    ContainerKey,
    ContainerName,
    Kind,
    NodeName,
    PodUid,
    PodUidText,
    grantee_of,
)
from partage_plugins.api.pods import BudgetUse, Gang

Grants = Mapping[Kind, object]
"""One container's grants by kind: a tuple of the owner's grant type, or raw JSON if the reader has no owner of the
kind."""


def typed_grants(grants: Grants, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
    """The grants of `kind`, if they were decoded with its type; empty if there are none."""
    mine: Any = grants.get(kind.name, ())
    if isinstance(mine, tuple):
        return mine  # checked by the decoder, element by element
    raise not_decoded("allocation", kind)


class SuspendedFor(Struct, frozen=True, kw_only=True):
    """Why a pod's memory is off its cards: preemption for another pod."""

    by: PodUidText
    """The pod for which it is suspended: without its name, which may be of another namespace."""
    at: Annotated[int, Meta(ge=0, le=2**53)]
    """Since when, in seconds of Unix time: of several pods the oldest comes back first."""


class Allocation(Struct, frozen=True, kw_only=True):
    """A pod's grants on a node. `gen` only grows: an older, larger allocation cannot be replayed on the same pod."""

    v: Literal[1] = 1
    gen: int
    crit: tuple[str, ...] = ()
    """Fields that a reader must know or else refuse the allocation: names of the text's fields, or `kind.field` for a
    grant's. Entries that follow from the content are not listed here: the codec adds `budgets` and `suspended` to the
    text where it has them."""
    pod: PodUid
    node: NodeName
    containers: Mapping[ContainerName, Grants]
    """By the name under which they are counted: a container's, or a budget's name among containers (`grantee_of`)."""
    uses: tuple[BudgetUse, ...] = ()
    """Which containers use which budgets; sorted."""
    gang: Gang | None = None
    """The pod's gang, if any: on one node the gang's containers get their time slices together."""
    suspended: SuspendedFor | None = None
    """If present, its memory is to leave its cards, and no container of it may start. The cards stay its own: others
    may use them only while its node reports that the memory is off, and only pods of a higher priority."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> dict[ContainerName, tuple[GrantT, ...]]:
        """The grants of this kind, each once, by container or budget."""
        found = ((name, typed_grants(grants, kind)) for name, grants in self.containers.items())
        return {name: grants for name, grants in found if grants}

    def budgets_of(self, container: ContainerName) -> dict[Kind, BudgetName]:
        """The budgets that a container uses."""
        return {use.kind: use.budget for use in self.uses if use.container == container}

    def given(self, container: ContainerName, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
        """The grants of this kind that one container may use: its own, or its budget's."""
        budget = self.budgets_of(container).get(kind.name)
        grantee = container if budget is None else grantee_of(budget)
        return typed_grants(self.containers.get(grantee, {}), kind)


class ContainerAllocation(Struct, frozen=True, kw_only=True):
    """The record that crishim writes on a container that it rewrote: its key and its grants."""

    v: Literal[1] = 1
    key: ContainerKey
    gen: int
    grants: Grants
    budgets: Mapping[Kind, BudgetName] = {}
    """The kinds whose grants come from a budget, which other containers of the pod may use as well."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
        """The grants of this kind."""
        return typed_grants(self.grants, kind)
