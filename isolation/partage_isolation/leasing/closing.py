"""How a lease ends: it is closed, its work drains or is given up, and the card is free. Pure.

The cards of a gang close together and are free together: while work on one of them waits for a launch on another, the
gang opens once more for a moment. Whoever does not say in time that its work is done is silent from then on.
"""

from __future__ import annotations

from partage_isolation.leasing.gangs import Demander
from partage_isolation.leasing.life import DONE, ENDED, WANTED, Event
from partage_isolation.leasing.lines import Lines
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.timing import Timing


class Closing:
    """Of all leases of a node."""

    __slots__ = ("_lines", "_timing")

    def __init__(self, lines: Lines, timing: Timing) -> None:
        self._lines, self._timing = lines, timing

    def revoke(self, demander: Demander, now: int) -> None:
        """Its turn is over, on all cards that it holds."""
        for seat in demander.open_seats():
            seat.counts.revocations += 1
            self.close(seat, now, is_written=True)

    def expire(self, demander: Demander, now: int) -> None:
        """A deadline has passed; its processes know without being told, those on its other cards are told."""
        for seat in demander.open_seats():
            is_told = seat.is_leased and seat.deadline <= now and not seat.says_idle()
            self.close(seat, now, is_written=not is_told)

    def close(self, seat: Seat, now: int, *, is_written: bool) -> None:
        """One card; its work may still be under way."""
        seat.happens(ENDED, now)
        seat.closing_at = now
        seat.ended_at = now if is_written else seat.deadline
        epoch = seat.epoch
        if is_written:
            self._lines.say(seat)
        seat.undrained = {
            member
            for member, presence in seat.members.items()
            if presence.silent_since is None and presence.drained != epoch
        }
        if is_written:
            seat.forget_wants(epoch)
        if not (seat.undrained or seat.silent):  # its processes saw the end coming
            seat.measured(0)
            seat.counts.drained(0)

    def patience_ns(self, seat: Seat) -> int:
        """How long its work is waited for."""
        timing = self._timing
        return min(max(2 * seat.drain_ns, timing.drain_least_ns), timing.drain_quanta * timing.quantum_ns)

    def look_ns(self, demander: Demander) -> int:
        """When something has to be done about its closing."""
        closing = demander.closing()
        if len(closing) > 1 and not demander.is_reopened:
            return min(seat.closing_at for seat in closing) + self._timing.drain_least_ns
        return max(seat.closing_at + self.patience_ns(seat) for seat in closing if seat.undrained)

    def go_on(self, demander: Demander, now: int) -> bool:
        """Does what its time has come for; whether its cards are free now."""
        closing = demander.closing()
        if not closing:
            return False
        late = [seat for seat in closing if seat.undrained]
        if late and self._reopens(demander, closing, now):
            return False
        if late and any(now < seat.closing_at + self.patience_ns(seat) for seat in late):
            return False
        for seat in late:
            self._give_up(seat)
        for seat in closing:
            self.release(seat, now)
        demander.is_reopened = False
        return True

    def _reopens(self, demander: Demander, closing: list[Seat], now: int) -> bool:
        """Work on one card may wait for what threads at another's gate would launch: once, they may."""
        if len(closing) < 2 or demander.is_reopened:  # noqa: PLR2004
            return False
        if now < min(seat.closing_at for seat in closing) + self._timing.drain_least_ns:
            return False
        demander.is_reopened = True
        if not any(seat.waits() for seat in closing):
            return False
        for seat in closing:
            seat.happens(Event.REOPENED, now)
            self._lines.say(seat, now + self._timing.gang_reopen_ns)
            seat.look_at = seat.deadline
            seat.forget_wants()
        return True

    def _give_up(self, seat: Seat) -> None:
        """Nobody waits any longer: what still runs overlaps with others, and is charged as that."""
        seat.counts.overlaps += 1
        for member in seat.undrained:
            seat.members[member].silent_since = seat.ended_at
            seat.silent.add(member)
        seat.undrained = set()
        if seat not in seat.card.behind:
            seat.card.behind.append(seat)
        seat.demander.set_longest_wait()

    def release(self, seat: Seat, now: int) -> None:
        """The card is free."""
        card, is_back = seat.card, seat.waits()
        card.goes(seat, is_back=is_back)
        card.policy.ended(seat.account, now)
        card.holder = None
        seat.settle(now)
        seat.undrained = set()
        seat.happens(DONE, now)
        seat.rested_at = now
        if is_back:
            seat.happens(WANTED, now)
            seat.begins_to_wait(now)
