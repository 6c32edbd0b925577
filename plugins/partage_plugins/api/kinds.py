"""A kind: a family of devices, the types that its owner declares, and the promises of its grants.

A kind's part of an inventory, a request or an allocation is opaque to the core. Its owner declares here, once, the
types of those parts; the core then decodes them at the border, and every hook gets typed values:
`inventory.part(FPGA)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from partage_plugins.api.names import Kind, Namespace

Role = Literal["init", "sidecar", "app"]
"""A container's role. Init containers run one after another before the others; sidecars start with them and keep
running."""
Promise = Literal["memory", "share", "limit", "movable", "suspended"]
"""The limits of a grant below a whole device on which others rely, and which a node plugin must enforce. `movable`: its
memory leaves the device during the turns of others. `suspended`: the running container's memory is off the device, and
stays off until the plugin is told otherwise."""
PROMISES: Final[frozenset[Promise]] = frozenset(("memory", "share", "limit", "movable", "suspended"))

RequestT = TypeVar("RequestT")
GrantT = TypeVar("GrantT")
PartT = TypeVar("PartT")


def whole_devices(grant: object, part: object) -> frozenset[Promise]:
    """The default, for kinds that only hand out whole devices: nothing to enforce."""
    del grant, part
    return frozenset()


@dataclass(frozen=True)
class KindType(Generic[RequestT, GrantT, PartT]):
    """A kind as its owner declares it; the return value of `partage_kind`.

    The three types are frozen `msgspec.Struct`s; the request must be hashable. Declare one module-level constant and
    use it on both sides.
    """

    name: Kind
    request: type[RequestT]
    """One container's request."""
    grant: type[GrantT]
    """One device given to one container."""
    part: type[PartT]
    """This kind's part of a node's inventory."""
    promises: Callable[[GrantT, PartT | None], frozenset[Promise]] = whole_devices
    """What must be enforced for this grant; the part is None if the inventory lacks this kind."""
    everywhere: Callable[[RequestT, Role, PartT], Iterable[GrantT]] | None = None
    """What counts for a container whose grants are lost: its request on every device of its node, and its tags. It is
    taken on top of what others hold there, so it may exceed what is left, and giving it back must free nothing of
    theirs. None, the right value for whole devices: the node takes no new requests of this kind until that container's
    pod is gone."""
    in_namespace: Callable[[RequestT, Namespace], RequestT] | None = None
    """Returns the request with all names that users choose, and that requests are compared by, qualified by the pod's
    namespace. The host calls it once, when the request is created. None: there are no such names."""


AnyKind: TypeAlias = KindType[Any, Any, Any]
