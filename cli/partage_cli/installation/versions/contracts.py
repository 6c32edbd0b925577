"""The formats that each version writes on a node and can read, so that neither loses the other's data. Pure.

Consecutive versions must read what both write, since the node must be able to go back: containers of the first keep
running under the second, and those of the second under the first again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from partage_base.condition import Condition
from partage_cli.installation.errors import UnfitNode
from partage_isolation.store.rows_file import LAYOUT
from partage_isolation.store.specs import Spec
from partage_isolation.wire.packets import VERSION as PACKETS
from partage_plugins.api import Inventory
from partage_plugins.api.allocation import ContainerAllocation
from partage_plugins.codecs.allocation import VERSIONS
from partage_plugins.codecs.critical import CRIT


class Contract(Struct, frozen=True):
    reads: frozenset[str]
    leaves: frozenset[str] = frozenset()
    """Formats that it writes itself; empty: other programs write the formats that it announces as readable."""


Contracts = Mapping[str, Contract]
"""By subject, for people."""


def _both_ways(form: object) -> Contract:
    forms = frozenset((str(form),))
    return Contract(forms, forms)


def _form(struct: type[Struct]) -> object:
    return next(field.default for field in msgspec.structs.fields(struct) if field.name == "v")


OURS: Final[Contracts] = {
    "allocations on pods": Contract(frozenset((*map(str, VERSIONS), *CRIT))),
    "grants on containers": _both_ways(_form(ContainerAllocation)),
    "packets of the library": _both_ways(PACKETS),
    "the broker's rows": _both_ways(LAYOUT),
    "limits of containers": _both_ways(_form(Spec)),
    "the inventory": _both_ways(_form(Inventory)),
    "the condition of crishim": _both_ways(_form(Condition)),
}
"""Those of this version."""


def encode(contracts: Contracts) -> bytes:
    return msgspec.json.encode(contracts, order="sorted")


def decode(raw: bytes) -> Contracts:
    return msgspec.json.decode(raw, type=dict[str, Contract])


def require_neighbours(before: Contracts, after: Contracts) -> None:
    """Raises `UnfitNode` if one of them can't read what the other leaves on the node."""
    if unread := [*_unread(before, after, announced=True)]:
        raise UnfitNode(
            f"the new version cannot read what this node has: {'; '.join(unread)}. Go there by a version between, or "
            "`partage node uninstall`, which drains the pods with shares, and install it then"
        )
    if unread := [*_unread(after, before, announced=False)]:
        raise UnfitNode(
            f"there would be no way back, since the version in force cannot read what the new one leaves: "
            f"{'; '.join(unread)}. Go there by a version between, or `partage node uninstall` and install it then"
        )


def _unread(writer: Contracts, reader: Contracts, *, announced: bool) -> Iterator[str]:
    for name, contract in sorted(writer.items()):
        left = contract.leaves or (contract.reads if announced else frozenset())
        missing = left - (reader[name].reads if name in reader else left)
        if missing:
            yield f"{name} ({', '.join(sorted(missing))})"
