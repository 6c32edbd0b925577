"""What a lease is given as: until a deadline, alone, or free; and how an open one changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_isolation.leasing.closing import Closing
from partage_isolation.leasing.gangs import Demander
from partage_isolation.leasing.life import FREE, LENT, RENEWED, Event
from partage_isolation.leasing.lines import UNIT_NS, Lines
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.timing import Timing

_RENEWALS: Final = 4
"""In a row: a process that has been stopped can't say that it needs nothing."""


class Granting:
    """Of all leases of a node."""

    __slots__ = ("_closing", "_lines", "_timing")

    def __init__(self, closing: Closing, lines: Lines, timing: Timing) -> None:
        self._closing, self._lines, self._timing = closing, lines, timing

    def grant(self, demander: Demander, needs: Sequence[Seat], now: int) -> None:
        """All at once, all with the same deadline."""
        if len(demander.seats) > 1:
            demander.torn_turns += 1
            demander.set_longest_wait()
        runs = [(seat, self._run_ns(seat, now)) for seat in needs]
        ends = [now + run for _, run in runs if run is not None]
        ends += [seat.deadline for seat in demander.open_seats() if seat.is_leased]
        for seat, run in runs:
            self._take(seat, now)
            if run is not None:
                self._open(seat, LENT, now, min(ends))
            else:
                self._open(seat, Event.FREED if _may_be_free(demander, seat) else Event.GIVEN, now)

    def _run_ns(self, seat: Seat, now: int) -> int | None:
        is_contended = seat.card.is_contended(seat, now - self._timing.min_run_ns)
        return seat.card.policy.run_ns(seat.account, now, is_contended=is_contended)

    def _take(self, seat: Seat, now: int) -> None:
        seat.card.holder = seat
        seat.charged_from = seat.granted_at = now
        seat.renewals = 0
        seat.is_awake = seat.is_capped = seat.is_passed = False
        seat.counts.leases += 1
        seat.forget_wants()

    def _open(self, seat: Seat, event: Event, now: int, deadline: int = 0) -> None:
        seat.happens(event, now)
        self._lines.say(seat, deadline)
        seat.look_at = self._left_alone_until(seat)
        if deadline and seat.renewals < _RENEWALS and seat.card.policy.renews and self._more_ns(seat, now) != 0:
            seat.look_at = seat.deadline - self._timing.renew_ns

    def _left_alone_until(self, seat: Seat) -> int:
        """When its end is looked at, unless its processes speak before; of a gang at once: its cards close together."""
        return seat.deadline if len(seat.demander.seats) > 1 else seat.deadline + self._timing.speaks_ns

    def end_by(self, seat: Seat, deadline: int, now: int) -> None:
        """An open lease ends then and not later: at once, where a deadline would have passed before it is read."""
        if deadline < now + UNIT_NS:
            self._closing.revoke(seat.demander, now)
        elif not seat.is_leased:
            self._open(seat, Event.CONTENDED, now, deadline)
        elif deadline < seat.deadline:
            self._open(seat, RENEWED, now, deadline)

    def renew(self, demander: Demander, now: int) -> None:
        """Instead of being drained and granted again a lease goes on, where the same container would be first."""
        seats = [seat for seat in demander.open_seats() if seat.is_leased]
        runs = [self._more_ns(seat, now) for seat in seats]
        if demander.is_reopened or 0 in runs:
            for seat in seats:
                seat.look_at = self._left_alone_until(seat)
            return
        ends = [seat.deadline + run for seat, run in zip(seats, runs, strict=True) if run is not None]
        for seat, run in zip(seats, runs, strict=True):
            seat.renewals += 1
            if run is not None:
                self._open(seat, RENEWED, now, min(ends))
            else:
                self._open(seat, Event.RELIEVED, now)

    def _more_ns(self, seat: Seat, now: int) -> int | None:
        """How much longer; 0: somebody else is first then, None: nobody else wants the card."""
        policy, left = seat.card.policy, seat.deadline - now
        rank = policy.rank(seat.account, now, left)
        for other in seat.card.seats:
            is_there = other is not seat and other.is_waiting and not other.is_capped
            if is_there and (other.is_overdue(now) or policy.rank(other.account, now) < rank):
                return 0
        run = self._run_ns(seat, now)
        if run is None or run == self._timing.quantum_ns:
            return run
        more = run - left
        return more if more >= self._timing.min_run_ns else 0

    def adjust(self, demander: Demander, seat: Seat, now: int) -> None:
        """A lease without a deadline stays what it was given as only while that is right."""
        if seat.is_leased:
            return
        run = seat.card.policy.run_ns(seat.account, now, is_contended=False)
        if run is not None:
            self.end_by(seat, now + max(run, self._timing.min_run_ns), now)
        elif (seat.life is FREE) != _may_be_free(demander, seat):
            self._open(seat, Event.JOINED_BY if seat.life is FREE else Event.ALONE, now)


def _may_be_free(demander: Demander, seat: Seat) -> bool:
    """Nobody else is there; nor on another card of its gang, which will want to end all together."""
    return seat.card.is_alone(seat) and all(other.card.is_alone(other) for other in demander.seats)
