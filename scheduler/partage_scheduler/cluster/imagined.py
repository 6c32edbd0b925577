"""The cluster without some of its pods, for as long as somebody looks.

What is asked meanwhile is answered as if they had left. Afterwards all of them are back.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from partage_plugins.vocabulary import PodUid
from partage_scheduler.cluster.rules import Rules
from partage_scheduler.cluster.seats import Seat
from partage_scheduler.cluster.unknown import Closed
from partage_scheduler.decision import Decider


class Imagined:
    """A context; pods may leave and come back in any order."""

    def __init__(self, decider: Decider, rules: Rules, closed: Closed) -> None:
        self._decider, self._rules, self._closed = decider, rules, closed
        self._away: dict[PodUid, Seat] = {}

    def remove(self, seat: Seat) -> None:
        """As if it had left its node, which is known."""
        uid = seat.pod.uid
        self._away[uid] = seat
        self._decider.give_back(uid)
        self._rules.remove_pod(uid)
        self._closed.remove(uid)

    def back(self, seat: Seat) -> None:
        """It is there after all; one that had not left is there anyway."""
        if self._away.pop(seat.pod.uid, None) is None:
            return
        slot = self._decider.slot(seat.node)
        if slot is None:
            raise ValueError(f"node {seat.node} went away while somebody looked at it")
        self._decider.take(seat.allocation, seat.needs)
        self._rules.put_pod(slot, seat.pod)
        self._closed.put(seat)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for seat in tuple(self._away.values()):
            self.back(seat)
