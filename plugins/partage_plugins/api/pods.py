"""A pod as dialects read it, and its requests as every other hook sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from partage_plugins.api.kinds import GrantT, KindType, PartT, RequestT, Role
from partage_plugins.api.names import (
    BudgetName,
    BudgetNameText,
    ContainerName,
    Kind,
    Namespace,
    NamespaceText,
    PodName,
    PodUid,
    TagText,
    budget_of,
    claim_of,
)


class PodRef(Struct, frozen=True, kw_only=True):
    namespace: Namespace
    name: PodName
    uid: PodUid


class Resources(Struct, frozen=True, kw_only=True):
    """CPU and main memory: of a node, or needed by a pod."""

    cpu_milli: int = 0
    memory_bytes: int = 0


class Gang(Struct, frozen=True):
    """Pods of one namespace that are bound all or none: `size` of them at once, further ones one by one."""

    namespace: NamespaceText
    name: TagText
    size: Annotated[int, Meta(ge=1, le=65535)]


class PodContainer(Struct, frozen=True, kw_only=True):
    """One container of a pod's specification; quantities as the user wrote them."""

    name: ContainerName
    role: Role = "app"
    limits: Mapping[str, str] = {}
    requests: Mapping[str, str] = {}
    variables: tuple[str, ...] = ()
    """Names, without values, of a few environment variables whose names relate to GPUs."""


class Pod(Struct, frozen=True, kw_only=True):
    """The part of a pod that dialects may read."""

    ref: PodRef
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    containers: tuple[PodContainer, ...]


class Budgeted(Struct, frozen=True, kw_only=True):
    """A dialect's result for a container that shares a grant with others of its pod instead of getting its own.

    All containers that name the same budget for a kind must give an equal request. It is granted once.
    """

    budget: BudgetNameText
    ask: object
    """A value of the request type that the kind's owner declared."""


class BudgetUse(Struct, frozen=True, order=True):
    """The use of a budget's grants of one kind by one container."""

    container: ContainerName
    kind: Kind
    budget: BudgetName


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """One container's requests of every kind, or the joint requests of a budget's containers."""

    name: ContainerName
    role: Role
    asks: tuple[tuple[Kind, object], ...]
    """Pairs rather than a mapping, so that a request can be hashed."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> RequestT | None:
        """Its request of this kind, or None."""
        for name, ask in self.asks:
            if name == kind.name and isinstance(ask, kind.request):
                return ask
        return None


class PodRequest(Struct, frozen=True, kw_only=True):
    """All of a pod's requests, by container with its role; containers that request nothing are left out.

    A budget is one entry among them, under a name that no container has (`grantee_of`), so it is granted and counted
    like one container, regardless of how many use it. The same holds for each request of a claim that is to be
    allocated (`claim_grantee`).
    """

    pod: PodRef
    containers: tuple[ContainerRequest, ...]
    uses: tuple[BudgetUse, ...] = ()
    """Which containers use which budgets; sorted."""
    gang: Gang | None = None
    """The pod's gang; filled in by the host."""
    needs: Resources = Resources()
    """The pod's needs for CPU and main memory; filled in by the host, which also checks that they fit."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that any container requests."""
        return frozenset(kind for container in self.containers for kind, _ in container.asks)

    @property
    def asking(self) -> frozenset[ContainerName]:
        """The containers that get a grant: their own, or a budget's."""
        own = (each.name for each in self.containers if budget_of(each.name) is None and claim_of(each.name) is None)
        return frozenset((*own, *(use.container for use in self.uses)))

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> dict[ContainerName, RequestT]:
        """The requests of this kind, by container or budget."""
        found = ((container.name, container.of(kind)) for container in self.containers)
        return {name: ask for name, ask in found if ask is not None}
