"""Budgets in an allocation's text: grants listed beside the containers, which refer to them by name.

    "budgets": {"pod": {"gpu": [...]}}, "containers": {"a": {"gpu": {"budget": "pod"}}, "b": {"gpu": {"budget": "pod"}}}

In memory a budget is listed among the containers under a name that no container has, so a plugin that counts grants
counts it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from partage_plugins.api.names import BudgetName, BudgetNameText, ContainerName, Kind, budget_of, grantee_of
from partage_plugins.api.pods import BudgetUse
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError

FIELD: Final = "budgets"
"""Its name in `crit` and in nodes' inventories."""
GrantsT = TypeVar("GrantsT")
RawByKind = Mapping[Kind, msgspec.Raw]
_WHAT: Final = "allocation"
_BLANKS: Final = b" \t\r\n"


class _Use(Struct, frozen=True):
    budget: BudgetNameText


_USE: Final = Reader(_WHAT, _Use)


def joined(
    containers: Mapping[ContainerName, RawByKind], budgets: Mapping[BudgetName, RawByKind]
) -> tuple[Mapping[ContainerName, RawByKind], tuple[BudgetUse, ...]]:
    """Grants by the name under which they count, and the uses of budgets; refused if a container uses a missing budget.

    Without budgets, no container's grants are parsed.
    """
    if not budgets:
        return containers, ()
    counted: dict[ContainerName, RawByKind] = {grantee_of(name): grants for name, grants in budgets.items()}
    uses: list[BudgetUse] = []
    for name, grants in containers.items():
        used = {kind: _used(budgets, name, kind, raw) for kind, raw in grants.items() if _is_object(raw)}
        uses += (BudgetUse(name, kind, budget) for kind, budget in used.items())
        if not used or len(used) < len(grants):
            counted[name] = {kind: raw for kind, raw in grants.items() if kind not in used}
    return counted, tuple(sorted(uses))


def parted(
    counted: Mapping[ContainerName, Mapping[Kind, GrantsT]], uses: tuple[BudgetUse, ...]
) -> tuple[Mapping[ContainerName, Mapping[Kind, Any]], dict[BudgetName, Mapping[Kind, GrantsT]]]:
    """The inverse: the content of `containers`, and that of `budgets`."""
    named = ((budget_of(name), grants) for name, grants in counted.items())
    budgets = {name: grants for name, grants in named if name is not None}
    if not budgets:
        return counted, {}
    containers: dict[ContainerName, dict[Kind, Any]] = {
        name: dict(grants) for name, grants in counted.items() if budget_of(name) is None
    }
    for use in uses:
        containers.setdefault(use.container, {})[use.kind] = _Use(use.budget)
    return containers, budgets


def place_of(grantee: ContainerName) -> str:
    """The path of its grants in the text."""
    budget = budget_of(grantee)
    return f"$.containers.{grantee}" if budget is None else f"$.{FIELD}.{budget}"


def _used(
    budgets: Mapping[BudgetName, RawByKind], container: ContainerName, kind: Kind, raw: msgspec.Raw
) -> BudgetName:
    at = f"$.containers.{container}.{kind}"
    name = _USE.read_part(raw, at=at).budget
    if kind not in budgets.get(name, {}):
        having = [each for each, grants in budgets.items() if kind in grants]
        allowed = f"a budget that has {kind}: {', '.join(having) or 'there is none'}"
        raise DecodeError(_WHAT, path=f"{at}.budget", value=repr(name), allowed=allowed)
    return name


def _is_object(raw: msgspec.Raw) -> bool:
    """Whether it is an object with content. Grants are a list, but no grants may also be written as an empty object."""
    text = bytes(raw).strip(_BLANKS)
    return text.startswith(b"{") and bool(text[1:-1].strip(_BLANKS))
