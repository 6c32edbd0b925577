"""Budgets as an allocation's text has them: their grants beside the containers, which say whose they use.

    "budgets": {"pod": {"gpu": [...]}}, "containers": {"a": {"gpu": {"budget": "pod"}}, "b": {"gpu": {"budget": "pod"}}}

Elsewhere a budget stands among the containers under a name that none of them has, so that a plugin that counts what is
granted finds it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary.names import BudgetName, BudgetNameText, ContainerName, Kind, budget_of, grantee_of
from partage_plugins.vocabulary.pods import BudgetUse

FIELD: Final = "budgets"
"""As `crit` and nodes name it."""
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
    """Grants by who is counted, and who uses which budget; refused where a container uses one that is not there.

    Without budgets, nothing that a container has is looked at.
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
    """The opposite: what stands under `containers`, and what under `budgets`."""
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
    """Where its grants stand in the text."""
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
    """Grants are a list. Nothing at all may be written as an empty object, too."""
    text = bytes(raw).strip(_BLANKS)
    return text.startswith(b"{") and bool(text[1:-1].strip(_BLANKS))
