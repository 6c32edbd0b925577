"""Cards that are decided on together, and all that happens on them in time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from partage_isolation.leasing.cards import Card
from partage_isolation.leasing.closing import Closing
from partage_isolation.leasing.deciding import Deciding
from partage_isolation.leasing.gangs import Demander
from partage_isolation.leasing.granting import Granting
from partage_isolation.leasing.life import Life
from partage_isolation.leasing.lines import Lines
from partage_isolation.leasing.timing import Timing


class Island:
    """Mostly one card; several where gangs tie them together."""

    __slots__ = ("_closing", "_deciding", "_granting", "_timing", "cards", "due")

    def __init__(self, cards: Sequence[Card], lines: Lines, timing: Timing, *, due: int | None = None) -> None:
        self.cards, self._timing, self.due = cards, timing, due
        self._closing, self._granting = Closing(lines, timing), Granting(lines, timing)
        self._deciding = Deciding(cards, self._closing, self._granting, timing)

    def charge(self, now: int) -> None:
        """All its time until now."""
        for card in self.cards:
            card.charge(now)

    def go_on(self, now: int) -> None:
        """Does all that it is time for."""
        while True:
            for card in self.cards:
                if card.holder:
                    self._look(card.holder.demander, now)
            if not self._deciding.decide(now):
                break
        self.due = self._next(now)

    def finish(self, demander: Demander, now: int) -> None:
        """Where all members have ended a lease themselves, or were idle, that card is closed; of a gang when idle."""
        for seat in demander.seats:
            if seat.is_open and seat.life is not Life.FREE and seat.all_finished():
                is_idle = seat.says_idle()
                if is_idle or len(demander.seats) == 1:
                    seat.is_quiet = is_idle
                    is_written = is_idle or seat.life is not Life.LEASED or seat.deadline > now
                    self._closing.close(seat, now, is_written=is_written)

    def _look(self, demander: Demander, now: int) -> None:
        for seat in demander.seats:
            if seat.life is Life.LEASED and seat.deadline <= now:
                self._closing.expire(demander, now)
                break
            if seat.life is Life.LEASED and seat.look_at <= now:
                self._granting.renew(demander, now)
                break
            if seat.is_open and seat.card.holder is seat:
                self._granting.adjust(demander, seat, now)
        self._closing.go_on(demander, now)

    def _next(self, now: int) -> int | None:
        """When something is to be done next."""
        times = [] if self._deciding.opens_at is None else [self._deciding.opens_at]
        for card in self.cards:
            holder = card.holder
            if holder and holder.life is Life.LEASED:
                times.append(holder.look_at)
            elif holder and holder.life is Life.CLOSING:
                times.append(self._closing.look_ns(holder.demander))
            for seat in card.seats:
                if seat.life is Life.WAITING and not seat.is_capped:
                    at = seat.waiting_since + seat.demander.longest_wait_ns
                    if at > now:
                        times.append(at)
        return min(times, default=None)
