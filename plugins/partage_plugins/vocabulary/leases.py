"""A lease: the right of one container to launch work on a card until a deadline. The broker grants it."""

from __future__ import annotations

from msgspec import Struct

from partage_plugins.vocabulary.names import CardId, ContainerKey


class Lease(Struct, frozen=True, kw_only=True):
    """One container's right to one card."""

    card: CardId
    container: ContainerKey
    until_ns: int
    """On the node's monotonic clock, which no restart of a daemon sets back."""

    def holds(self, now_ns: int) -> bool:
        """Whether work may be launched at this moment."""
        return now_ns < self.until_ns
