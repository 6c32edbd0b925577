"""What a pod was given (its allocation), and what one container carries of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from partage_plugins.vocabulary.inventory import not_decoded
from partage_plugins.vocabulary.kinds import GrantT, KindType, PartT, RequestT
from partage_plugins.vocabulary.names import BudgetName, ContainerKey, ContainerName, Kind, NodeName, PodUid, grantee_of
from partage_plugins.vocabulary.pods import BudgetUse, Gang

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
    """Fields that a reader must know or refuse: names of the text's fields, or `kind.field` of a grant's. Without those
    that follow from the rest: where there are budgets, the text names them."""
    pod: PodUid
    node: NodeName
    containers: Mapping[ContainerName, Grants]
    """By who is counted: a container, or a budget under its name among containers (`grantee_of`)."""
    uses: tuple[BudgetUse, ...] = ()
    """Which containers use which budgets; in order."""
    gang: Gang | None = None
    """That the pod is of: on one node its containers have their leases together."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> dict[ContainerName, tuple[GrantT, ...]]:
        """The grants of this kind, each once: by container, or by budget."""
        found = ((name, typed_grants(grants, kind)) for name, grants in self.containers.items())
        return {name: grants for name, grants in found if grants}

    def budgets_of(self, container: ContainerName) -> dict[Kind, BudgetName]:
        """The budgets that a container uses."""
        return {use.kind: use.budget for use in self.uses if use.container == container}

    def given(self, container: ContainerName, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
        """What one container may use of this kind: its own grants, or its budget's."""
        budget = self.budgets_of(container).get(kind.name)
        grantee = container if budget is None else grantee_of(budget)
        return typed_grants(self.containers.get(grantee, {}), kind)


class ContainerAllocation(Struct, frozen=True, kw_only=True):
    """What crishim writes on a container that it rewrote: who it is and what it was given."""

    v: Literal[1] = 1
    key: ContainerKey
    gen: int
    grants: Grants
    budgets: Mapping[Kind, BudgetName] = {}
    """The kinds of which the grants are a budget's, that the pod's other containers may use, too."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> tuple[GrantT, ...]:
        """The grants of this kind."""
        return typed_grants(self.grants, kind)
