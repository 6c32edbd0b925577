"""Whether this scheduler may decide and bind now, and why not; every component checks this before it acts."""

from __future__ import annotations

from msgspec import Struct

from partage_scheduler.api.election import Elector
from partage_scheduler.api.streams import Freshness


class NotLeading(Struct, frozen=True):
    def __str__(self) -> str:
        return "this scheduler of partage does not lead; ask the one that does, by the Service of the extender"


class OutOfDate(Struct, frozen=True):
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        return f"partage does not know as of now: {', '.join(self.kinds)}"


Obstacle = NotLeading | OutOfDate


class Authority:
    """A scheduler may bind while it leads, and may decide while its cache is also in sync."""

    def __init__(self, elector: Elector | None, freshness: Freshness) -> None:
        """Without an `elector` this scheduler is the only one, and always leads."""
        self._elector, self._freshness = elector, freshness

    def may_bind(self) -> bool:
        """Whether a request that changes the cluster may be sent."""
        return self._elector is None or self._elector.leads

    def may_decide(self) -> bool:
        """Whether the scheduler leads and its cache is in sync, so that decisions are valid."""
        return not self._freshness.missing and self.may_bind()

    def obstacle(self) -> Obstacle | None:
        if not self.may_bind():
            return NotLeading()
        missing = tuple(sorted(self._freshness.missing))
        return OutOfDate(missing) if missing else None
