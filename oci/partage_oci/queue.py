"""Queue of clients that wait for room on this machine's cards: first come, first served.

Only the first entry is tried, so that many small requests do not starve a large one. Its room is reserved for a short
time, for the first container that is created with the same request. Single-threaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from partage_oci.placement import Placement
from partage_oci.shortage import NoRoom
from partage_plugins.api import GPU, PodRequest
from partage_plugins.errors import PartageError, Refused

MOST_WAITING: Final = 64


@dataclass(eq=False)
class _Waiting:
    request: PodRequest
    waits: Callable[[str], None]
    """Called with the reason, whenever it changes."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    error: PartageError | None = None
    said: str = ""

    def say(self, why: str) -> None:
        if why != self.said:
            self.said = why
            self.waits(why)


class _Reservation(Struct, frozen=True):
    request: PodRequest
    until_s: float


class Queue:
    def __init__(self, placement: Placement, *, keep_s: float, clock: Callable[[], float]) -> None:
        self._placement, self._keep_s, self._clock = placement, keep_s, clock
        self._waiting: list[_Waiting] = []
        self._reserved: list[_Reservation] = []

    async def wait(self, request: PodRequest, waits: Callable[[str], None]) -> None:
        """Wait until room is reserved; raises errors of plugins, and `Refused` if it never fits or too many wait."""
        if len(self._waiting) >= MOST_WAITING:
            raise Refused(f"{MOST_WAITING} wait for room already; try again when some have theirs")
        why = self._placement.why_not(request)
        if why is not None and why.lasts:
            raise Refused(why.why)
        waiting = _Waiting(request, waits)
        self._waiting.append(waiting)
        try:
            self.look()
            await waiting.done.wait()
            if waiting.error is not None:
                raise waiting.error
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self.look()

    def look(self) -> None:
        """Expire reservations, and serve the queue with the room that is free."""
        now_s = self._clock()
        for each in [each for each in self._reserved if each.until_s <= now_s]:
            self._end(each)
        while self._waiting:
            first = self._waiting[0]
            try:
                found = self._placement.place(first.request)
            except PartageError as error:  # a plugin's error on one request must not block the others
                first.error = error
            else:
                if isinstance(found, NoRoom):
                    first.say(found.why)
                    break
                self._reserved.append(_Reservation(first.request, now_s + self._keep_s))
            del self._waiting[0]
            first.done.set()
        for place, later in enumerate(self._waiting[1:], start=1):
            later.say(f"{place} came before and wait{'s' if place == 1 else ''} for room, too")

    def claim(self, request: PodRequest) -> None:
        """Release the reservation for such a request, since its container is being created."""
        for each in self._reserved:
            if each.request.of(GPU) == request.of(GPU):
                self._end(each)
                return

    def _end(self, reservation: _Reservation) -> None:
        self._reserved.remove(reservation)
        self._placement.release(reservation.request.pod.uid)
