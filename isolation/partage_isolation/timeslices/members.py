"""Changes that processes' reports make to their container's run queue entry. Pure."""

from __future__ import annotations

from partage_isolation.timeslices.card import RunQueueEntry
from partage_isolation.timeslices.grants import Lines
from partage_isolation.timeslices.lifecycle import IDLE, WANTED, Member, Presence, TimeSliceEvent, TimeSliceState


def joins(entry: RunQueueEntry, member: Member, now: int) -> None:
    """A process has joined, or joined again, which invalidates its earlier reports."""
    _no_longer_silent(entry, member)
    entry.undrained.discard(member)
    entry.members[member] = Presence()
    if entry.life is TimeSliceState.EMPTY:
        entry.happens(TimeSliceEvent.JOINED, now)


def wants(entry: RunQueueEntry, member: Member, now: int) -> bool:
    """Record that a thread waits at the gate; return whether the container has started to wait by that."""
    presence = entry.members[member]
    goes_on = presence.is_idle and entry.is_open
    presence.is_stopped = presence.is_idle = False
    if goes_on or (entry.is_open and not entry.has_timeslice):
        return False
    presence.wants = True
    if not entry.is_busy and entry.life is IDLE:
        entry.is_quiet, entry.is_awake = False, True
        entry.card.came(entry)
        entry.happens(WANTED, now)
        entry.begins_to_wait(now)
        return True
    return False


def has_drained(entry: RunQueueEntry, member: Member, at: int, now: int) -> None:
    """The member's work is finished since `at`, and it launches nothing more in this epoch."""
    presence = entry.members[member]
    presence.drained = entry.epoch
    _speaks_again(entry, member, min(now, at), now)
    if member in entry.undrained:
        entry.undrained.discard(member)
        if not entry.undrained:
            entry.measured(now - entry.ended_at)
            entry.counts.drained(now - entry.ended_at)


def is_idle(entry: RunQueueEntry, member: Member, now: int) -> None:
    """The member is idle for now, and may start again."""
    if entry.is_closing:
        has_drained(entry, member, now, now)
    else:
        entry.members[member].is_idle = True
        _speaks_again(entry, member, now, now)


def leaves(entry: RunQueueEntry, member: Member, now: int) -> None:
    """A process has left, and its work with it."""
    _no_longer_silent(entry, member)
    entry.undrained.discard(member)
    del entry.members[member]
    if entry.members and entry.is_waiting and not entry.waits():
        entry.happens(TimeSliceEvent.WITHDRAWN, now)


def empties(entry: RunQueueEntry, lines: Lines, now: int) -> None:
    """The last process has left: the card is free immediately."""
    card, was_open = entry.card, entry.is_open and not (entry.has_timeslice and entry.deadline <= now)
    if card.holder is entry:
        card.goes(entry, is_back=False)
        card.policy.ended(entry.account, now, is_idle=True)
        card.holder = None
    entry.settle(now)
    entry.happens(TimeSliceEvent.LEFT, now)
    entry.is_quiet, entry.is_capped, entry.is_passed = True, False, False
    if was_open:
        lines.say(entry)


def _speaks_again(entry: RunQueueEntry, member: Member, at: int, now: int) -> None:
    """End a member's silence, and refund what its container was charged for time after `at`, when its work ended."""
    presence = entry.members[member]
    since, presence.is_stopped = presence.silent_since, False
    if since is None:
        return
    at = max(at, since)
    entry.measured(at - since)
    if now > since:
        paid = entry.overlap_paid * (now - at) // (now - since)
        entry.card.refund(entry, paid, now)
    _no_longer_silent(entry, member)


def _no_longer_silent(entry: RunQueueEntry, member: Member) -> None:
    if member in entry.silent:
        entry.members[member].silent_since = None
        entry.silent.discard(member)
        if not entry.silent:
            entry.card.behind.remove(entry)
            entry.overlap_paid = 0
            entry.group.set_longest_wait()
