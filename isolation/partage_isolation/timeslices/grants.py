"""Time slices from grant to end: grant, renew, close, drain, or abandon the drain.

Pure. The cards of a gang close together and become free together. While work on one of them waits for a launch on
another, the gang reopens once for a moment. A member that does not report in time that its work is finished is silent
from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.card import Group, RunQueueEntry
from partage_isolation.timeslices.durations import Timing
from partage_isolation.timeslices.lifecycle import DONE, ENDED, FREE, LENT, LINES, RENEWED, WANTED, TimeSliceEvent
from partage_isolation.timeslices.line import Notify, Write, after

UNIT_NS: Final = 1 << 14
"""A deadline nearer than this may already have passed."""


class Lines:
    """Actions to perform, queued until the caller takes them."""

    __slots__ = ("_acts",)

    def __init__(self) -> None:
        self._acts: list[Write | Notify] = []

    def take(self) -> list[Write | Notify]:
        acts, self._acts = self._acts, []
        return acts

    def forget(self, key: BudgetKey) -> None:
        """Drop actions for a container that has no process left to read them."""
        self._acts = [act for act in self._acts if act.key != key]

    def say(self, entry: RunQueueEntry, deadline: int = 0) -> None:
        """Publish the time slice's state. The deadline is rounded as in the line, so both sides use the same value."""
        entry.epoch = after(entry.epoch)
        entry.line = LINES[entry.life]
        entry.deadline = deadline - deadline % UNIT_NS
        key, card = entry.key, entry.card.id
        self._acts += (Write(key, card, entry.line, entry.epoch, entry.deadline), Notify(key, card, entry.epoch))


class Closing:
    __slots__ = ("_lines", "_timing")

    def __init__(self, lines: Lines, timing: Timing) -> None:
        self._lines, self._timing = lines, timing

    def revoke(self, group: Group, now: int) -> None:
        """End its time slices on all cards that it holds."""
        for entry in group.open_entries():
            entry.counts.revocations += 1
            self.close(entry, now, is_written=True)

    def expire(self, group: Group, now: int) -> None:
        """End time slices after a deadline. Processes see it in their line; the gang's other lines are written."""
        for entry in group.open_entries():
            is_told = entry.has_timeslice and entry.deadline <= now and not entry.says_idle()
            self.close(entry, now, is_written=not is_told)

    def close(self, entry: RunQueueEntry, now: int, *, is_written: bool) -> None:
        entry.happens(ENDED, now)
        entry.closing_at = now
        entry.ended_at = now if is_written else entry.deadline
        epoch = entry.epoch
        if is_written:
            self._lines.say(entry)
        entry.undrained = {
            member
            for member, presence in entry.members.items()
            if presence.silent_since is None and presence.drained != epoch
        }
        if is_written:
            entry.forget_wants(epoch)
        if not (entry.undrained or entry.silent):  # its processes saw the end coming
            entry.measured(0)
            entry.counts.drained(0)

    def patience_ns(self, entry: RunQueueEntry) -> int:
        timing = self._timing
        return min(max(2 * entry.drain_ns, timing.drain_least_ns), timing.drain_quanta * timing.quantum_ns)

    def look_ns(self, group: Group) -> int:
        """When its closing has to be checked next."""
        closing = group.closing()
        if len(closing) > 1 and not group.is_reopened:
            return min(entry.closing_at for entry in closing) + self._timing.drain_least_ns
        return max(entry.closing_at + self.patience_ns(entry) for entry in closing if entry.undrained)

    def go_on(self, group: Group, now: int) -> bool:
        """Perform what is due; return whether its cards are free now."""
        closing = group.closing()
        if not closing:
            return False
        late = [entry for entry in closing if entry.undrained]
        if late and self._reopens(group, closing, now):
            return False
        if late and any(now < entry.closing_at + self.patience_ns(entry) for entry in late):
            return False
        for entry in late:
            self._give_up(entry)
        for entry in closing:
            self.release(entry, now)
        group.is_reopened = False
        return True

    def _reopens(self, group: Group, closing: list[RunQueueEntry], now: int) -> bool:
        """Work on one card may wait for launches on another, so reopen its cards, once per closing."""
        if len(closing) < 2 or group.is_reopened:  # noqa: PLR2004
            return False
        if now < min(entry.closing_at for entry in closing) + self._timing.drain_least_ns:
            return False
        group.is_reopened = True
        if not any(entry.waits() for entry in closing):
            return False
        for entry in closing:
            entry.happens(TimeSliceEvent.REOPENED, now)
            self._lines.say(entry, now + self._timing.gang_reopen_ns)
            entry.look_at = entry.deadline
            entry.forget_wants()
        return True

    def _give_up(self, entry: RunQueueEntry) -> None:
        """Stop waiting for a drain: work that still runs overlaps with others, and is charged as such."""
        entry.counts.overlaps += 1
        for member in entry.undrained:
            entry.members[member].silent_since = entry.ended_at
            entry.silent.add(member)
        entry.undrained = set()
        if entry not in entry.card.behind:
            entry.card.behind.append(entry)
        entry.group.set_longest_wait()

    def release(self, entry: RunQueueEntry, now: int) -> None:
        card, is_back = entry.card, entry.waits()
        card.goes(entry, is_back=is_back)
        card.policy.ended(entry.account, now, is_idle=entry.is_quiet and not is_back)
        card.holder = None
        entry.settle(now)
        entry.undrained = set()
        entry.happens(DONE, now)
        entry.rested_at = now
        if is_back:
            entry.happens(WANTED, now)
            entry.begins_to_wait(now)


_RENEWALS: Final = 4
"""The limit of consecutive renewals, since a stopped process can't report that it is idle."""


class Granting:
    __slots__ = ("_closing", "_lines", "_timing")

    def __init__(self, closing: Closing, lines: Lines, timing: Timing) -> None:
        self._closing, self._lines, self._timing = closing, lines, timing

    def grant(self, group: Group, needs: Sequence[RunQueueEntry], now: int) -> None:
        """Grant all entries at once, with the same deadline."""
        runs = [(entry, self._run_ns(entry, now)) for entry in needs]
        ends = [now + run for _, run in runs if run is not None]
        if len(group.entries) > 1:
            group.torn_turns += 1
            group.set_longest_wait()
            ends += [entry.deadline for entry in group.open_entries() if entry.has_timeslice]
        for entry, run in runs:
            self._take(entry, now)
            if run is not None:
                self._open(entry, LENT, now, min(ends))
            else:
                self._open(entry, TimeSliceEvent.FREED if _may_be_free(group, entry) else TimeSliceEvent.GIVEN, now)

    def _run_ns(self, entry: RunQueueEntry, now: int) -> int | None:
        is_contended = entry.card.is_contended(entry, now - self._timing.min_run_ns)
        return entry.card.policy.run_ns(entry.account, now, is_contended=is_contended)

    def _take(self, entry: RunQueueEntry, now: int) -> None:
        entry.card.holder = entry
        entry.charged_from = entry.granted_at = now
        entry.renewals = 0
        entry.is_awake = entry.is_capped = entry.is_passed = False
        entry.counts.timeslices += 1
        entry.forget_wants()

    def _open(self, entry: RunQueueEntry, event: TimeSliceEvent, now: int, deadline: int = 0) -> None:
        entry.happens(event, now)
        self._lines.say(entry, deadline)
        entry.look_at = self._left_alone_until(entry)
        if deadline and entry.renewals < _RENEWALS and entry.card.policy.renews and self._more_ns(entry, now) != 0:
            entry.look_at = entry.deadline - self._timing.renew_ns

    def _left_alone_until(self, entry: RunQueueEntry) -> int:
        """When to check its end, unless its processes report first; at once for a gang, whose cards close together."""
        return entry.deadline if len(entry.group.entries) > 1 else entry.deadline + self._timing.speaks_ns

    def end_by(self, entry: RunQueueEntry, deadline: int, now: int) -> None:
        """Bring an open time slice's end forward; revoke it where its processes would read the deadline too late."""
        if deadline < now + UNIT_NS:
            self._closing.revoke(entry.group, now)
        elif not entry.has_timeslice:
            self._open(entry, TimeSliceEvent.CONTENDED, now, deadline)
        elif deadline < entry.deadline:
            self._open(entry, RENEWED, now, deadline)

    def renew(self, group: Group, now: int) -> None:
        """Extend time slices, instead of draining and granting them again, if the same container would be picked."""
        entries = [entry for entry in group.open_entries() if entry.has_timeslice]
        runs = [self._more_ns(entry, now) for entry in entries]
        if group.is_reopened or 0 in runs:
            for entry in entries:
                entry.look_at = self._left_alone_until(entry)
            return
        ends = [entry.deadline + run for entry, run in zip(entries, runs, strict=True) if run is not None]
        for entry, run in zip(entries, runs, strict=True):
            entry.renewals += 1
            if run is not None:
                self._open(entry, RENEWED, now, min(ends))
            else:
                self._open(entry, TimeSliceEvent.RELIEVED, now)

    def _more_ns(self, entry: RunQueueEntry, now: int) -> int | None:
        """The length of the extension; 0 if another container ranks first then, None if no other wants the card."""
        policy, left = entry.card.policy, entry.deadline - now
        rank = policy.rank(entry.account, now, left)
        for other in entry.card.entries:
            is_there = other is not entry and other.is_waiting and not other.is_capped
            if is_there and (other.is_overdue(now) or policy.rank(other.account, now) < rank):
                return 0
        run = self._run_ns(entry, now)
        if run is None or run == self._timing.quantum_ns:
            return run
        more = run - left
        return more if more >= self._timing.min_run_ns else 0

    def adjust(self, group: Group, entry: RunQueueEntry, now: int) -> None:
        """Change a time slice without a deadline once its reason no longer holds."""
        if entry.has_timeslice:
            return
        run = entry.card.policy.run_ns(entry.account, now, is_contended=False)
        if run is not None:
            self.end_by(entry, now + max(run, self._timing.min_run_ns), now)
        elif (entry.life is FREE) != _may_be_free(group, entry):
            self._open(entry, TimeSliceEvent.JOINED_BY if entry.life is FREE else TimeSliceEvent.ALONE, now)


def _may_be_free(group: Group, entry: RunQueueEntry) -> bool:
    """No other container is on this card or the gang's other cards, since a gang ends on all its cards together."""
    return entry.card.is_alone(entry) and all(other.card.is_alone(other) for other in group.entries)
