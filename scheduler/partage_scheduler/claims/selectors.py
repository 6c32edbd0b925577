"""The supported expressions by which classes and claims select devices. Pure.

Kubernetes has a whole language for them (CEL). Supported here are comparisons joined by `&&`: of the driver, of a
card's uuid, and of its model; and `device.allowMultipleAllocations`. Anything else is rejected, because a device that
it excludes must not be given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from partage_plugins.api import CardId
from partage_plugins.api.claims import DRIVER
from partage_plugins.errors import Refused
from partage_scheduler.objects.claims import Selector

_ATTRIBUTE: Final = r'device\.attributes\["gpu\.partage\.dev"\]\.(?P<name>uuid|model)\s*==\s*"(?P<value>[^"\\]{1,128})"'
_TERM: Final = re.compile(
    rf'\s*(?:device\.driver\s*==\s*"(?P<driver>[^"\\]{{1,253}})"'
    rf"|device\.allowMultipleAllocations(?:\s*==\s*true)?|{_ATTRIBUTE})\s*",
    re.ASCII,
)
_LONGEST: Final = 10 << 10
"""Limit of an expression's length, as in the API server."""
ALLOWED: Final = (
    f'device.driver == "{DRIVER}", device.allowMultipleAllocations, and uuid or model in '
    f'device.attributes["{DRIVER}"] compared by ==, joined by &&'
)


class Chosen(NamedTuple):
    """The conjunction of all selectors."""

    is_ours: bool = False
    """Whether they name our driver."""
    card: CardId | None = None
    model: str | None = None


def chosen_by(selectors: Iterable[Selector], of: str) -> Chosen:
    """Parses selectors; raises `Refused` for unsupported ones. `of` names the object that has them."""
    found = Chosen()
    for each in selectors:
        for driver, name, value in _terms("" if each.cel is None else each.cel.expression, of):
            if driver:
                found = found._replace(is_ours=_ours(driver, of))
            elif name == "uuid":
                found = found._replace(card=CardId(_same(found.card, value, of)))
            elif name == "model":
                found = found._replace(model=_same(found.model, value, of))
    return found


def both(one: Chosen, other: Chosen, of: str) -> Chosen:
    """The conjunction of both; raises `Refused` if they exclude each other."""
    card = one.card if other.card is None else CardId(_same(one.card, other.card, of))
    model = one.model if other.model is None else _same(one.model, other.model, of)
    return Chosen(one.is_ours or other.is_ours, card, model)


def _terms(expression: str, of: str) -> Iterable[tuple[str, str, str]]:
    """Driver, attribute and value of each term; all empty for a term that holds for all our devices."""
    found: list[tuple[str, str, str]] = []
    at = 0
    while len(expression) <= _LONGEST and (term := _TERM.match(expression, at)) is not None:
        found.append((term["driver"] or "", term["name"] or "", term["value"] or ""))
        if term.end() == len(expression):
            return found
        if not expression.startswith("&&", term.end()):
            break
        at = term.end() + 2
    raise Refused(f"{of} selects devices by {expression[at:].strip()[:120]!r}; allowed: {ALLOWED}")


def _ours(driver: str, of: str) -> bool:
    if driver != DRIVER:
        raise Refused(f"{of} is of driver {driver}, and this scheduler allocates devices of {DRIVER} alone")
    return True


def _same(before: str | None, value: str, of: str) -> str:
    if before not in {None, value}:
        raise Refused(f"{of} selects devices that are {before} and {value} at once; there are none")
    return value
