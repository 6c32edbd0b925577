"""Time slices from grant to end: grant, renew, close, drain, or abandon the drain.

Pure. The cards of a gang close together and become free together. While work on one of them waits for a launch on
another, the gang reopens once for a moment. A member that does not report in time that its work is finished is silent
from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_isolation.leases.card import Demander, Seat
from partage_isolation.leases.durations import Timing
from partage_isolation.leases.life import DONE, ENDED, FREE, LENT, LINES, RENEWED, WANTED, LeaseEvent
from partage_isolation.leases.line import Hint, Write, after
from partage_isolation.names import BudgetKey

UNIT_NS: Final = 1 << 14
"""A deadline nearer than this may already have passed."""


class Lines:
    """Actions to perform, queued until the caller takes them."""

    __slots__ = ("_acts",)

    def __init__(self) -> None:
        self._acts: list[Write | Hint] = []

    def take(self) -> list[Write | Hint]:
        acts, self._acts = self._acts, []
        return acts

    def forget(self, key: BudgetKey) -> None:
        """Drop actions for a container that has no process left to read them."""
        self._acts = [act for act in self._acts if act.key != key]

    def say(self, seat: Seat, deadline: int = 0) -> None:
        """Publish the time slice's state. The deadline is rounded as in the line, so both sides use the same value."""
        seat.epoch = after(seat.epoch)
        seat.line = LINES[seat.life]
        seat.deadline = deadline - deadline % UNIT_NS
        key, card = seat.key, seat.card.id
        self._acts += (Write(key, card, seat.line, seat.epoch, seat.deadline), Hint(key, card, seat.epoch))


class Closing:
    __slots__ = ("_lines", "_timing")

    def __init__(self, lines: Lines, timing: Timing) -> None:
        self._lines, self._timing = lines, timing

    def revoke(self, demander: Demander, now: int) -> None:
        """End its time slices on all cards that it holds."""
        for seat in demander.open_seats():
            seat.counts.revocations += 1
            self.close(seat, now, is_written=True)

    def expire(self, demander: Demander, now: int) -> None:
        """End time slices after a deadline. Processes see it in their line; the gang's other lines are written."""
        for seat in demander.open_seats():
            is_told = seat.is_leased and seat.deadline <= now and not seat.says_idle()
            self.close(seat, now, is_written=not is_told)

    def close(self, seat: Seat, now: int, *, is_written: bool) -> None:
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
        timing = self._timing
        return min(max(2 * seat.drain_ns, timing.drain_least_ns), timing.drain_quanta * timing.quantum_ns)

    def look_ns(self, demander: Demander) -> int:
        """When its closing has to be checked next."""
        closing = demander.closing()
        if len(closing) > 1 and not demander.is_reopened:
            return min(seat.closing_at for seat in closing) + self._timing.drain_least_ns
        return max(seat.closing_at + self.patience_ns(seat) for seat in closing if seat.undrained)

    def go_on(self, demander: Demander, now: int) -> bool:
        """Perform what is due; return whether its cards are free now."""
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
        """Work on one card may wait for launches on another, so reopen its cards, once per closing."""
        if len(closing) < 2 or demander.is_reopened:  # noqa: PLR2004
            return False
        if now < min(seat.closing_at for seat in closing) + self._timing.drain_least_ns:
            return False
        demander.is_reopened = True
        if not any(seat.waits() for seat in closing):
            return False
        for seat in closing:
            seat.happens(LeaseEvent.REOPENED, now)
            self._lines.say(seat, now + self._timing.gang_reopen_ns)
            seat.look_at = seat.deadline
            seat.forget_wants()
        return True

    def _give_up(self, seat: Seat) -> None:
        """Stop waiting for a drain: work that still runs overlaps with others, and is charged as such."""
        seat.counts.overlaps += 1
        for member in seat.undrained:
            seat.members[member].silent_since = seat.ended_at
            seat.silent.add(member)
        seat.undrained = set()
        if seat not in seat.card.behind:
            seat.card.behind.append(seat)
        seat.demander.set_longest_wait()

    def release(self, seat: Seat, now: int) -> None:
        card, is_back = seat.card, seat.waits()
        card.goes(seat, is_back=is_back)
        card.policy.ended(seat.account, now, is_idle=seat.is_quiet and not is_back)
        card.holder = None
        seat.settle(now)
        seat.undrained = set()
        seat.happens(DONE, now)
        seat.rested_at = now
        if is_back:
            seat.happens(WANTED, now)
            seat.begins_to_wait(now)


_RENEWALS: Final = 4
"""The limit of consecutive renewals, since a stopped process can't report that it is idle."""


class Granting:
    __slots__ = ("_closing", "_lines", "_timing")

    def __init__(self, closing: Closing, lines: Lines, timing: Timing) -> None:
        self._closing, self._lines, self._timing = closing, lines, timing

    def grant(self, demander: Demander, needs: Sequence[Seat], now: int) -> None:
        """Grant all entries at once, with the same deadline."""
        runs = [(seat, self._run_ns(seat, now)) for seat in needs]
        ends = [now + run for _, run in runs if run is not None]
        if len(demander.seats) > 1:
            demander.torn_turns += 1
            demander.set_longest_wait()
            ends += [seat.deadline for seat in demander.open_seats() if seat.is_leased]
        for seat, run in runs:
            self._take(seat, now)
            if run is not None:
                self._open(seat, LENT, now, min(ends))
            else:
                self._open(seat, LeaseEvent.FREED if _may_be_free(demander, seat) else LeaseEvent.GIVEN, now)

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

    def _open(self, seat: Seat, event: LeaseEvent, now: int, deadline: int = 0) -> None:
        seat.happens(event, now)
        self._lines.say(seat, deadline)
        seat.look_at = self._left_alone_until(seat)
        if deadline and seat.renewals < _RENEWALS and seat.card.policy.renews and self._more_ns(seat, now) != 0:
            seat.look_at = seat.deadline - self._timing.renew_ns

    def _left_alone_until(self, seat: Seat) -> int:
        """When to check its end, unless its processes report first; at once for a gang, whose cards close together."""
        return seat.deadline if len(seat.demander.seats) > 1 else seat.deadline + self._timing.speaks_ns

    def end_by(self, seat: Seat, deadline: int, now: int) -> None:
        """Bring an open time slice's end forward; revoke it where its processes would read the deadline too late."""
        if deadline < now + UNIT_NS:
            self._closing.revoke(seat.demander, now)
        elif not seat.is_leased:
            self._open(seat, LeaseEvent.CONTENDED, now, deadline)
        elif deadline < seat.deadline:
            self._open(seat, RENEWED, now, deadline)

    def renew(self, demander: Demander, now: int) -> None:
        """Extend time slices, instead of draining and granting them again, if the same container would be picked."""
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
                self._open(seat, LeaseEvent.RELIEVED, now)

    def _more_ns(self, seat: Seat, now: int) -> int | None:
        """The length of the extension; 0 if another container ranks first then, None if no other wants the card."""
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
        """Change a time slice without a deadline once its reason no longer holds."""
        if seat.is_leased:
            return
        run = seat.card.policy.run_ns(seat.account, now, is_contended=False)
        if run is not None:
            self.end_by(seat, now + max(run, self._timing.min_run_ns), now)
        elif (seat.life is FREE) != _may_be_free(demander, seat):
            self._open(seat, LeaseEvent.JOINED_BY if seat.life is FREE else LeaseEvent.ALONE, now)


def _may_be_free(demander: Demander, seat: Seat) -> bool:
    """No other container is on this card or the gang's other cards, since a gang ends on all its cards together."""
    return seat.card.is_alone(seat) and all(other.card.is_alone(other) for other in demander.seats)
