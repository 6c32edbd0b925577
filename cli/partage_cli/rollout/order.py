"""What is to be done with a node, and whose turn it is. Pure.

The labelled canary comes first, then one node at a time, and nobody after a failure. Each node decides that for itself,
from what all nodes say and who holds the Lease, so there is no leader to lose. A node writes `working` after it has the
Lease and before it touches anything, and what came of it before it gives the Lease back. So one that says `working` and
does not hold it has gone silent in the middle: it may be the one that a new version broke, and it stops the others like
one that failed. It goes on itself as soon as its installer lives again.

Being switched off waits for nobody: it is the way out of a version that fails.

The host's own facts win over what was said: a node that a person has mended says so by itself, and the roll-out goes
on. What failed stays so and is not tried again at that version: another try may restart kubelet once more, and who
looks into it shall find the node as it failed. Another version, another label, or taking the annotation away begins
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from partage_cli.rollout.told import Member, Told, Wish, telling

Command = Literal["install", "upgrade", "switch-on", "uninstall"]
"""Of `partage node`."""


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """By the word of its own `partage node status -o json`, as far as it is needed here."""

    version: str | None = None
    """What is installed; None: nothing is."""
    in_force: bool = False
    why: str | None = ""
    """Why it is not in force."""
    altered: tuple[str, ...] = ()
    """Files of the installation that are missing or other than they were installed."""

    def is_as_asked(self, wish: Wish, version: str) -> bool:
        if wish is Wish.OFF:
            return self.version is None
        return self.in_force and self.version == version


def wanted(node: Member, version: str, host: HostState) -> Told | tuple[Command, ...]:
    """What the node says from now on, or what must be done first, until the host is as it should be."""
    if host.is_as_asked(node.wish, version):
        return telling(version, node.wish, "in-force" if node.wish is Wish.ON else "off")
    said = node.state(version)
    if said == "failed" and node.told is not None:
        return node.told
    if said == "in-force":
        return telling(version, node.wish, "failed", f"it was in force and is no more: {host.why}")
    if node.wish is Wish.OFF:
        return ("uninstall",)
    return ("upgrade" if host.version not in (None, version) else "install", "switch-on")


class Hold(msgspec.Struct, frozen=True):
    """A node must wait, and looks at one thing until that changes."""

    why: str
    on: str | None
    """A node; None: the Lease."""


class Stoppage(msgspec.Struct, frozen=True):
    """Why no further node begins at a version."""

    node: str
    why: str


def hold(me: str, version: str, members: Sequence[Member], holder: str) -> Hold | None:
    """Why the node `me`, one of the members, has to wait for its version; None: it may take the Lease, or has it.

    `holder` has the Lease and is alive; empty: nobody.
    """
    mine = next(member for member in members if member.name == me)
    if mine.state(version) != "working":
        stopped, first = stoppage(version, members, holder), canary(version, members)
        if stopped is not None:
            return Hold(f"stopped: {stopped.node} {stopped.why}", on=stopped.node)
        if first not in (None, me):
            return Hold(f"the canary {first} comes first", on=first)
    return Hold(f"{holder} is at work, and one may be at a time", on=None) if holder not in ("", me) else None


def stoppage(version: str, members: Sequence[Member], holder: str) -> Stoppage | None:
    """The first node by name that failed at this version, or went silent while it worked."""
    for member in members:
        state = member.state(version) if member.wish is Wish.ON else None
        if state == "failed" and member.told is not None:
            return Stoppage(member.name, f"failed: {member.told.why}")
        if state == "working" and member.name != holder:
            return Stoppage(member.name, "went silent while it worked; is the node up, and its installer?")
    return None


def canary(version: str, members: Sequence[Member]) -> str | None:
    """The first node by name with the canary's label, until it is in force at this version."""
    labelled = (member for member in members if member.is_canary and member.wish is Wish.ON)
    first = next(labelled, None)
    return None if first is None or first.state(version) == "in-force" else first.name
