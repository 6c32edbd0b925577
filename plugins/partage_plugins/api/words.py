"""The keys of one system's dialect, by which pods make requests, regardless of whether anything here reads them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Where = Literal["limits", "annotations", "labels", "variables"]
"""`variables` are environment variables of a container."""


class DialectWords(Struct, frozen=True, kw_only=True):
    """The keys of one system; complete, with their domain."""

    system: str
    """The system's usual name."""
    where: Where
    """Where pods write the keys in `asking`."""
    asking: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    """Annotations that refine a request and request nothing by themselves."""
    known: frozenset[str] = frozenset()
    """Other valid keys below the prefixes, such as those that the system itself writes."""
    prefixes: tuple[str, ...] = ()
    """Keys with these prefixes belong to this system; one that is not listed above is misspelt."""
    families: tuple[str, ...] = ()
    """Prefixes of requesting keys that can't all be listed: every key with such a prefix counts as correctly spelt."""
    is_read: bool = True
    """Whether the plugin reads the keys in `asking`."""
    remedy: str
    """What the pod's owner or the operator should do about a pod whose request is not read."""
