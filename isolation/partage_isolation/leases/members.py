"""Changes that processes' reports make to their container's run queue entry. Pure."""

from __future__ import annotations

from partage_isolation.leases.card import Seat
from partage_isolation.leases.grants import Lines
from partage_isolation.leases.life import IDLE, WANTED, LeaseEvent, Life, Member, Presence


def joins(seat: Seat, member: Member, now: int) -> None:
    """A process has joined, or joined again, which invalidates its earlier reports."""
    _no_longer_silent(seat, member)
    seat.undrained.discard(member)
    seat.members[member] = Presence()
    if seat.life is Life.EMPTY:
        seat.happens(LeaseEvent.JOINED, now)


def wants(seat: Seat, member: Member, now: int) -> bool:
    """Record that a thread waits at the gate; return whether the container has started to wait by that."""
    presence = seat.members[member]
    goes_on = presence.is_idle and seat.is_open
    presence.is_stopped = presence.is_idle = False
    if goes_on or (seat.is_open and not seat.is_leased):
        return False
    presence.wants = True
    if not seat.is_busy and seat.life is IDLE:
        seat.is_quiet, seat.is_awake = False, True
        seat.card.came(seat)
        seat.happens(WANTED, now)
        seat.begins_to_wait(now)
        return True
    return False


def has_drained(seat: Seat, member: Member, at: int, now: int) -> None:
    """The member's work is finished since `at`, and it launches nothing more in this epoch."""
    presence = seat.members[member]
    presence.drained = seat.epoch
    _speaks_again(seat, member, min(now, at), now)
    if member in seat.undrained:
        seat.undrained.discard(member)
        if not seat.undrained:
            seat.measured(now - seat.ended_at)
            seat.counts.drained(now - seat.ended_at)


def is_idle(seat: Seat, member: Member, now: int) -> None:
    """The member is idle for now, and may start again."""
    if seat.is_closing:
        has_drained(seat, member, now, now)
    else:
        seat.members[member].is_idle = True
        _speaks_again(seat, member, now, now)


def leaves(seat: Seat, member: Member, now: int) -> None:
    """A process has left, and its work with it."""
    _no_longer_silent(seat, member)
    seat.undrained.discard(member)
    del seat.members[member]
    if seat.members and seat.is_waiting and not seat.waits():
        seat.happens(LeaseEvent.WITHDRAWN, now)


def empties(seat: Seat, lines: Lines, now: int) -> None:
    """The last process has left: the card is free immediately."""
    card, was_open = seat.card, seat.is_open and not (seat.is_leased and seat.deadline <= now)
    if card.holder is seat:
        card.goes(seat, is_back=False)
        card.policy.ended(seat.account, now, is_idle=True)
        card.holder = None
    seat.settle(now)
    seat.happens(LeaseEvent.LEFT, now)
    seat.is_quiet, seat.is_capped, seat.is_passed = True, False, False
    if was_open:
        lines.say(seat)


def _speaks_again(seat: Seat, member: Member, at: int, now: int) -> None:
    """End a member's silence, and refund what its container was charged for time after `at`, when its work ended."""
    presence = seat.members[member]
    since, presence.is_stopped = presence.silent_since, False
    if since is None:
        return
    at = max(at, since)
    seat.measured(at - since)
    if now > since:
        paid = seat.overlap_paid * (now - at) // (now - since)
        seat.card.refund(seat, paid, now)
    _no_longer_silent(seat, member)


def _no_longer_silent(seat: Seat, member: Member) -> None:
    if member in seat.silent:
        seat.members[member].silent_since = None
        seat.silent.discard(member)
        if not seat.silent:
            seat.card.behind.remove(seat)
            seat.overlap_paid = 0
            seat.demander.set_longest_wait()
