"""Whose turn it is: one canary, then a few at a time, and nobody more after a failure. Pure.

Decided by each node for itself, from what all nodes say and who holds a slot, so there is no leader to lose. A node
writes `working` after it has a slot and before it touches anything, and what came of it before it gives the slot back.
So one that says `working` and holds no slot has gone silent in the middle: it may be the one that a new version broke,
and it stops the others like one that failed. It goes on itself as soon as its installer lives again.

Being switched off waits for a slot and for nothing else: it is the way out of a version that fails.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from partage_cli.rollout.told import Member, Wish

_PERCENT: Final = 100


class Take(msgspec.Struct, frozen=True):
    """It may work, with this slot."""

    slot: int


class Hold(msgspec.Struct, frozen=True):
    """It must wait, and looks at one thing until that changes."""

    why: str
    on: str | int
    """A node, or a slot."""


class Stoppage(msgspec.Struct, frozen=True):
    """Why no further node begins at a version."""

    node: str
    why: str


def turn(me: str, version: str, members: Sequence[Member], held: Mapping[int, str], *, percent: int) -> Take | Hold:
    """What the node `me`, which is one of the members, may do. `held` has who holds each slot that is alive."""
    mine = next(member for member in members if member.name == me)
    ours = next((slot for slot, holder in held.items() if holder == me), None)
    most = width(len(members), percent)
    if mine.wish is Wish.ON:
        begun = mine.state(version) == "working"
        stopped = None if begun else stoppage(version, members, held)
        if stopped is not None:
            return Hold(f"stopped: {stopped.node} {stopped.why}", on=stopped.node)
        if not is_proven(version, members):
            most = 1
            first = me if begun else canary(version, members, me)
            if first != me:
                return Hold(f"the canary {first} comes first", on=first)
    if ours is not None:
        return Take(ours)
    if len(held) >= most:
        return Hold(f"{len(held)} at work, and {most} may be at a time", on=_one_of(held, me))
    return Take(next(slot for slot in range(most) if slot not in held))


def stoppage(version: str, members: Sequence[Member], held: Mapping[int, str]) -> Stoppage | None:
    """The first node by name that failed at this version, or went silent while it worked."""
    holders = set(held.values())
    for member in members:
        state = member.state(version) if member.wish is Wish.ON else None
        if state == "failed" and member.told is not None:
            return Stoppage(member.name, f"failed: {member.told.why}")
        if state == "working" and member.name not in holders:
            return Stoppage(member.name, "went silent while it worked; is the node up, and its installer?")
    return None


def is_proven(version: str, members: Sequence[Member]) -> bool:
    """Whether the canary came into force at this version; without a labelled one, whether any node did."""
    labelled = _labelled(members)
    return any(
        member.state(version) == "in-force"
        for member in members
        if member.wish is Wish.ON and (labelled is None or member.name == labelled)
    )


def canary(version: str, members: Sequence[Member], me: str) -> str:
    """The labelled one; without one the first by name of those whose installers have spoken at this version."""
    speaks = (
        member.name
        for member in members
        if member.wish is Wish.ON and (member.name == me or member.state(version) in ("waiting", "working"))
    )
    return _labelled(members) or min(speaks)


def width(members: int, percent: int) -> int:
    """How many may work at the same time, once the canary has."""
    return max(1, -(-members * percent // _PERCENT))


def _labelled(members: Sequence[Member]) -> str | None:
    return min((each.name for each in members if each.is_canary and each.wish is Wish.ON), default=None)


def _one_of(held: Mapping[int, str], me: str) -> int:
    """Each node looks at one slot alone, and not all at the same."""
    return sorted(held)[zlib.crc32(me.encode()) % len(held)]
