"""Finds the promises of a container's grants that no plugin enforces.

A grant below a whole device promises the rest to others. If nothing on the node enforces that, the container must not
start, unless the operator has set promises to advisory. No setting allows a movable grant whose memory does not move:
its card may be oversubscribed, and a container that stays on it takes memory that others were promised, even if all
keep to their limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from partage_plugins.api.containers import Adjustment, Granted
from partage_plugins.api.keys import MOVABLE
from partage_plugins.api.kinds import AnyKind, Promise
from partage_plugins.api.names import Kind
from partage_plugins.errors import Refused

Enforcement = Literal["strict", "advisory"]
_MOVABLE: Final[Promise] = "movable"
UNMOVED: Final = (
    "partage: nothing on this node moves the memory of this container off its card, which may be promised beyond what "
    f"it has; upgrade partage-broker and its library there, or take {MOVABLE} off the pod"
)
Broken = Mapping[Kind, tuple[Promise, ...]]
"""Promises that no plugin enforces, by kind."""


def unenforced(granted: Granted, adjustment: Adjustment, kinds: Iterable[AnyKind]) -> dict[Kind, tuple[Promise, ...]]:
    """The promises of these grants that this adjustment does not enforce."""
    broken: dict[Kind, tuple[Promise, ...]] = {}
    for kind in kinds:
        part = granted.part(kind)
        promised: set[Promise] = {promise for grant in granted.of(kind) for promise in kind.promises(grant, part)}
        empty = promised.difference(adjustment.enforces.get(kind.name, ()))
        if empty:
            broken[kind.name] = tuple(sorted(empty))
    return broken


def require_enforced(broken: Broken, enforcement: Enforcement) -> None:
    """Refuses if a promise is not enforced; limits may be unenforced if they are advisory."""
    limits = {kind: rest for kind, promises in broken.items() if (rest := tuple(p for p in promises if p != _MOVABLE))}
    if limits and enforcement == "strict":
        what = "; ".join(f"{', '.join(promises)} of {kind}" for kind, promises in sorted(limits.items()))
        raise Refused(
            f"partage: no plugin on this node enforces {what}; install the isolation plugin on the node, "
            "or set enforce = advisory to start containers without limits in force"
        )
    if any(_MOVABLE in promises for promises in broken.values()):
        raise Refused(UNMOVED)
