"""Cards that are decided on together, and all that happens on them in time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from partage_isolation.leasing.cards import Card
from partage_isolation.leasing.closing import Closing
from partage_isolation.leasing.deciding import Deciding
from partage_isolation.leasing.gangs import Demander
from partage_isolation.leasing.granting import Granting
from partage_isolation.leasing.life import FREE
from partage_isolation.leasing.lines import Lines
from partage_isolation.leasing.timing import NEVER, Timing
from partage_isolation.leasing.turns import Turns


class Island:
    """Mostly one card; several where gangs tie them together."""

    __slots__ = ("_closing", "_deciding", "_granting", "_timing", "cards", "due")

    def __init__(self, cards: Sequence[Card], lines: Lines, timing: Timing, *, due: int | None = None) -> None:
        self.cards, self._timing, self.due = cards, timing, due
        self._closing = Closing(lines, timing)
        self._granting = Granting(self._closing, lines, timing)
        self._deciding = decider(cards, self._granting, timing)

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
            if seat.is_open and seat.all_finished() and seat.life is not FREE:
                is_idle = seat.says_idle()
                if is_idle or len(demander.seats) == 1:
                    seat.is_quiet = is_idle
                    is_written = is_idle or not seat.is_leased or seat.deadline > now
                    self._closing.close(seat, now, is_written=is_written)

    def _look(self, demander: Demander, now: int) -> None:
        for seat in demander.seats:
            if seat.is_leased:
                if seat.deadline <= now:
                    self._closing.expire(demander, now)
                    break
                if seat.look_at <= now:
                    self._granting.renew(demander, now)
                    break
            elif seat.is_open and seat.card.holder is seat:
                self._granting.adjust(demander, seat, now)
        self._closing.go_on(demander, now)

    def _next(self, now: int) -> int | None:
        """When something is to be done next."""
        due = self._deciding.opens_at
        for card in self.cards:
            holder = card.holder
            if holder and holder.is_leased:
                due = min(due, holder.look_at)
            elif holder and holder.is_closing:
                due = min(due, self._closing.look_ns(holder.demander))
            if card.patient_until < due:
                due = min(due, card.patience_ends(now))
        return due if due < NEVER else None


def decider(cards: Sequence[Card], granting: Granting, timing: Timing) -> Deciding | Turns:
    """Who says who is next: the same on one card as on several, and cheaper."""
    return Turns(cards[0], granting, timing) if len(cards) == 1 else Deciding(cards, granting, timing)
