"""Which promises of a container's grants would be empty: made by a grant, enforced by no plugin.

A grant below a whole device promises the rest to others. If nothing on the node enforces that, the container must not
start, unless the operator's setting says that promises are advisory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from partage_plugins.errors import Refused
from partage_plugins.vocabulary.containers import Adjustment, Granted
from partage_plugins.vocabulary.kinds import AnyKind, Promise
from partage_plugins.vocabulary.names import Kind

Enforcement = Literal["strict", "advisory"]
Broken = Mapping[Kind, tuple[Promise, ...]]
"""Promises that no plugin enforces, by kind."""


def unenforced(granted: Granted, adjustment: Adjustment, kinds: Iterable[AnyKind]) -> dict[Kind, tuple[Promise, ...]]:
    """What these grants promise and this adjustment does not enforce."""
    broken: dict[Kind, tuple[Promise, ...]] = {}
    for kind in kinds:
        part = granted.part(kind)
        promised: set[Promise] = {promise for grant in granted.of(kind) for promise in kind.promises(grant, part)}
        empty = promised.difference(adjustment.enforces.get(kind.name, ()))
        if empty:
            broken[kind.name] = tuple(sorted(empty))
    return broken


def require_enforced(broken: Broken, enforcement: Enforcement) -> None:
    """Refuses where a promise is empty, unless promises are advisory."""
    if broken and enforcement == "strict":
        what = "; ".join(f"{', '.join(promises)} of {kind}" for kind, promises in sorted(broken.items()))
        raise Refused(
            f"partage: no plugin on this node enforces {what}; install the isolation plugin on the node, "
            "or set enforce = advisory to start containers without limits in force"
        )
