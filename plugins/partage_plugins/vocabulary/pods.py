"""A pod as dialects read it, and what it asks for as every other hook sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from partage_plugins.vocabulary.kinds import GrantT, KindType, PartT, RequestT, Role
from partage_plugins.vocabulary.names import (
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


class Room(Struct, frozen=True, kw_only=True):
    """CPU and main memory: of a node, or what a pod needs of one."""

    cpu_milli: int = 0
    memory_bytes: int = 0


class Gang(Struct, frozen=True):
    """Pods of one namespace that are bound all or none: so many of them at once, any more one by one."""

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
    """Names of environment variables that speak of a GPU; a few, without their values."""


class Pod(Struct, frozen=True, kw_only=True):
    """What a dialect may read of a pod."""

    ref: PodRef
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    containers: tuple[PodContainer, ...]


class Budgeted(Struct, frozen=True, kw_only=True):
    """A dialect's answer for a container that gets no grant of its own, but uses one together with others of its pod.

    All containers that name the same budget for a kind give an equal ask. It is granted once.
    """

    budget: BudgetNameText
    ask: object
    """Of the request type that the kind's owner declared."""


class BudgetUse(Struct, frozen=True, order=True):
    """One container uses a budget's grants of one kind."""

    container: ContainerName
    kind: Kind
    budget: BudgetName


class ContainerRequest(Struct, frozen=True, kw_only=True):
    """What one container asks for, of every kind; or what a budget's containers ask for together."""

    name: ContainerName
    role: Role
    asks: tuple[tuple[Kind, object], ...]
    """Pairs, so that a request can be hashed."""

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> RequestT | None:
        """What it asks for of this kind, or None."""
        for name, ask in self.asks:
            if name == kind.name and isinstance(ask, kind.request):
                return ask
        return None


class PodRequest(Struct, frozen=True, kw_only=True):
    """All of a pod's requests, by container with its role; containers that ask for nothing are left out.

    A budget is one entry among them, under a name that no container has (`grantee_of`). So it is granted and counted
    like one container, however many use it. So is each request of a claim that is to be allocated (`claim_grantee`).
    """

    pod: PodRef
    containers: tuple[ContainerRequest, ...]
    uses: tuple[BudgetUse, ...] = ()
    """Which containers use which budgets; in order."""
    gang: Gang | None = None
    """That the pod is of; the host fills it in."""
    needs: Room = Room()
    """What the whole pod asks of its node beside devices; the host fills it in, and checks by itself that it fits."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that any container asks for."""
        return frozenset(kind for container in self.containers for kind, _ in container.asks)

    @property
    def asking(self) -> frozenset[ContainerName]:
        """The containers that get something: a grant of their own, or a budget's."""
        own = (each.name for each in self.containers if budget_of(each.name) is None and claim_of(each.name) is None)
        return frozenset((*own, *(use.container for use in self.uses)))

    def of(self, kind: KindType[RequestT, GrantT, PartT]) -> dict[ContainerName, RequestT]:
        """The requests of this kind, by container or budget."""
        found = ((container.name, container.of(kind)) for container in self.containers)
        return {name: ask for name, ask in found if ask is not None}
