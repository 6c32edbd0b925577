"""What to do with a node, and whose turn it is. Pure.

The labelled canary comes first, then one node at a time, and none after a failure. Each node decides that itself, from
what all nodes report and who holds the Lease, so there is no leader to lose. A node writes `working` after it has the
Lease and before it changes anything, and the result before it gives the Lease back. So a node with `working` that does
not hold the Lease went silent midway: the new version may have broken it, and it stops the others like a failed one. It
continues as soon as its installer runs again.

Switching off needs no turn: it is the way out of a version that fails.

The host's actual state takes precedence over what was reported: a node that a person has repaired reports it, and the
roll-out continues. A failed node stays failed and is not retried at that version: another try may restart kubelet once
more, and the node should stay as it failed for whoever investigates. Another version, another label, or removing the
annotation starts over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from partage_cli.rollout.node_state import DesiredState, InstallReport, Member, telling

Command = Literal["install", "upgrade", "switch-on", "uninstall"]
"""Subcommands of `partage node`."""


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the host's `partage node status -o json` that are needed here."""

    version: str | None = None
    """The installed version; None: nothing is installed."""
    in_force: bool = False
    why: str | None = ""
    """Why it is not in force."""
    altered: tuple[str, ...] = ()
    """Files of the installation that are missing or altered."""

    def is_as_asked(self, wish: DesiredState, version: str) -> bool:
        if wish is DesiredState.OFF:
            return self.version is None
        return self.in_force and self.version == version


def wanted(node: Member, version: str, host: HostState) -> InstallReport | tuple[Command, ...]:
    """What the node reports from now on, or the commands to run until the host has the wanted state."""
    if host.is_as_asked(node.wish, version):
        return telling(version, node.wish, "in-force" if node.wish is DesiredState.ON else "off")
    said = node.state(version)
    if said == "failed" and node.told is not None:
        return node.told
    if said == "in-force":
        return telling(version, node.wish, "failed", f"it was in force and is no more: {host.why}")
    if node.wish is DesiredState.OFF:
        return ("uninstall",)
    return ("upgrade" if host.version not in (None, version) else "install", "switch-on")


class Hold(msgspec.Struct, frozen=True):
    """A node must wait, and polls one object until that changes."""

    why: str
    on: str | None
    """A node; None: the Lease."""


class Stoppage(msgspec.Struct, frozen=True):
    """Why no further node starts at a version."""

    node: str
    why: str


def hold(me: str, version: str, members: Sequence[Member], holder: str) -> Hold | None:
    """Why the node `me`, one of the members, has to wait for its version; None: it may take the Lease, or has it.

    `holder` has the Lease and is alive; empty if nobody has.
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
        state = member.state(version) if member.wish is DesiredState.ON else None
        if state == "failed" and member.told is not None:
            return Stoppage(member.name, f"failed: {member.told.why}")
        if state == "working" and member.name != holder:
            return Stoppage(member.name, "went silent while it worked; is the node up, and its installer?")
    return None


def canary(version: str, members: Sequence[Member]) -> str | None:
    """The first node by name with the canary's label, until it is in force at this version."""
    labelled = (member for member in members if member.is_canary and member.wish is DesiredState.ON)
    first = next(labelled, None)
    return None if first is None or first.state(version) == "in-force" else first.name
