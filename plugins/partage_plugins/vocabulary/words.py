"""The words by which pods ask in one system's way, whether or not anything here reads them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Where = Literal["limits", "annotations", "labels", "variables"]
"""The last are environment variables of a container."""


class DialectWords(Struct, frozen=True, kw_only=True):
    """Of one system; keys are whole, with their domain."""

    system: str
    """As its users call it."""
    where: Where
    """Where a pod says those by which it asks."""
    asking: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    """Annotations that say more of what is asked for, and ask for nothing by themselves."""
    known: frozenset[str] = frozenset()
    """Others below the prefixes that are right as they are: what the system writes, for one."""
    prefixes: tuple[str, ...] = ()
    """What begins so is this system's; where it is not among the words above it is misspelt."""
    families: tuple[str, ...] = ()
    """Prefixes of words by which a pod asks that cannot all be listed: what begins so is spelt as it should be."""
    is_read: bool = True
    """Whether the plugin reads those by which a pod asks."""
    remedy: str
    """What to do about a pod that asks in vain, for its owner or the operator."""
