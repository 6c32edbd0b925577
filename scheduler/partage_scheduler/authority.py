"""Whether this scheduler may decide and bind now, and if not, why. Everything that acts asks here, before each act."""

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
    """A scheduler binds while it leads, and decides while it also knows all that there is."""

    def __init__(self, elector: Elector | None, freshness: Freshness) -> None:
        """A scheduler without an `elector` is the only one, and leads."""
        self._elector, self._freshness = elector, freshness

    def may_bind(self) -> bool:
        """Whether a request that changes the cluster may be sent."""
        return self._elector is None or self._elector.leads

    def may_decide(self) -> bool:
        """Whether a decision on what is known now is worth anything."""
        return not self._freshness.missing and self.may_bind()

    def obstacle(self) -> Obstacle | None:
        if not self.may_bind():
            return NotLeading()
        missing = tuple(sorted(self._freshness.missing))
        return OutOfDate(missing) if missing else None
