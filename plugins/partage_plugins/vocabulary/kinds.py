"""A kind: a family of devices, the types that its owner gives it, and what its grants promise.

A kind's part of an inventory, a request or an allocation is opaque to the core. Its owner says once, here, which types
those parts have; the core then decodes them at the border, and every hook sees typed values: `inventory.part(FPGA)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from partage_plugins.vocabulary.names import Kind, Namespace

Role = Literal["init", "sidecar", "app"]
"""A container's. Init containers run one after another before the others; sidecars start with them and stay."""
Promise = Literal["memory", "share", "limit", "movable"]
"""What a grant below a whole device promises to others, and a node plugin must enforce. `movable`: its memory leaves
the device when it is the turn of others."""
PROMISES: Final[frozenset[Promise]] = frozenset(("memory", "share", "limit", "movable"))

RequestT = TypeVar("RequestT")
GrantT = TypeVar("GrantT")
PartT = TypeVar("PartT")


def whole_devices(grant: object, part: object) -> frozenset[Promise]:
    """For kinds that only hand out whole devices: nothing to enforce."""
    del grant, part
    return frozenset()


@dataclass(frozen=True)
class KindType(Generic[RequestT, GrantT, PartT]):
    """A kind as its owner declares it; the answer to `partage_kind`.

    The three types are frozen `msgspec.Struct`s; the request must be hashable. Declare one module-level constant and
    use it on both sides.
    """

    name: Kind
    request: type[RequestT]
    """What one container asks for."""
    grant: type[GrantT]
    """One device given to one container."""
    part: type[PartT]
    """This kind's part of a node's inventory."""
    promises: Callable[[GrantT, PartT | None], frozenset[Promise]] = whole_devices
    """What must be enforced for this grant; the part is None where the inventory lacks this kind."""
    everywhere: Callable[[RequestT, Role, PartT], Iterable[GrantT]] | None = None
    """What counts of a container whose grants are lost: its request on every device of its node, and its tags. It is
    taken beside what others hold there, so it may exceed what is left, and giving it back must free nothing of theirs.
    None, right for whole devices: the node takes no new requests of this kind until that container's pod is gone."""
    in_namespace: Callable[[RequestT, Namespace], RequestT] | None = None
    """The same request with all names that users choose, and that requests are compared by, qualified by the namespace
    of its pod. The host calls it once, when the request is made. None: there are no such names."""


AnyKind: TypeAlias = KindType[Any, Any, Any]
