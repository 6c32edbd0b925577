"""The cluster without some of its pods, for as long as somebody looks.

What is asked meanwhile is answered as if they had left. Afterwards all of them are back.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from partage_plugins.vocabulary import PodUid
from partage_scheduler.cluster.seats import Seat
from partage_scheduler.cluster.unknown import Closed
from partage_scheduler.decision import Decider
from partage_scheduler.predicates import Predicates


class Imagined:
    """A context; pods may leave and come back in any order."""

    def __init__(self, decider: Decider, predicates: Predicates, closed: Closed) -> None:
        self._decider, self._predicates, self._closed = decider, predicates, closed
        self._away: dict[PodUid, Seat] = {}

    def remove(self, seat: Seat) -> None:
        uid = seat.pod.uid
        self._away[uid] = seat
        self._decider.give_back(uid)
        self._predicates.remove_pod(uid)
        self._closed.remove(uid)

    def back(self, seat: Seat) -> None:
        """A pod that had not left is there anyway."""
        if self._away.pop(seat.pod.uid, None) is None:
            return
        slot = self._decider.slot(seat.node)
        if slot is None:
            raise ValueError(f"node {seat.node} went away while somebody looked at it")
        self._decider.take(seat.allocation, seat.needs)
        self._predicates.put_pod(slot, seat.pod)
        self._closed.put(seat)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for seat in tuple(self._away.values()):
            self.back(seat)
