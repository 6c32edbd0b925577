"""Who may keep others off a card: what keeps others off is asked for as what it keeps, which is the whole card.

Else one milli, for a quota of one milli, would take a card from everybody. The operator may name namespaces that are
trusted not to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from partage_gpu.allocator.plan import Ask
from partage_plugins.errors import Refused
from partage_plugins.vocabulary.keys import EXCLUSION
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.names import Namespace

NAMESPACES: Final = "PARTAGE_GPU_EXCLUSION_NAMESPACES"
EVERY_NAMESPACE: Final = Namespace("*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|\*", re.ASCII)


def read_namespaces(text: str) -> frozenset[Namespace]:
    """Names of namespaces, separated by commas; `*` is all. A `Refused` names what is none."""
    names = [each.strip() for each in text.split(",")] if text.strip() else []
    for name in names:
        if _NAMESPACE.fullmatch(name) is None:
            raise Refused(f"{name!r} is no namespace; allowed: names of namespaces separated by commas, or *")
    return frozenset(map(Namespace, names))


def excluding_part(asks: Iterable[Ask]) -> Ask | None:
    """The first ask, if any, for only a part of each card and for nobody else beside it."""
    found = (ask for ask in asks if ask.request.tags.exclusion is not None and ask.request.share_milli < WHOLE_MILLI)
    return next(found, None)


def require_trusted(namespace: Namespace, ask: Ask, trusted: frozenset[Namespace]) -> None:
    """Refuses a pod that keeps others off more than it asks for, unless its namespace may."""
    if trusted.isdisjoint((namespace, EVERY_NAMESPACE)):
        raise Refused(
            f"{EXCLUSION}: container {ask.container} asks for {ask.request.share_milli} milli of a card and would keep "
            f"others off all of it; ask for {WHOLE_MILLI} milli of each card, or have the operator name namespace "
            f"{namespace} in {NAMESPACES}"
        )
