"""What is to be done with one node, by what is asked for, how its host is and what it said before. Pure.

The host's own facts win over what was said: a node that a person has mended says so by itself, and the roll-out goes
on. What failed stays so and is not tried again at that version: another try may restart kubelet once more, and who
looks into it shall find the node as it failed. Another version, another label, or taking the annotation away begins
again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from partage_cli.rollout.told import Member, Told, Wish, telling

Command = Literal["install", "upgrade", "switch-on", "uninstall"]


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """By the word of its own `partage node status`."""

    version: str | None = None
    """What is installed."""
    in_force: bool = False
    why: str = ""
    """Why it is not in force."""
    altered: tuple[str, ...] = ()
    """Files of the installation that are missing or other than they were installed."""


class Errand(msgspec.Struct, frozen=True):
    """Commands of `partage node`, in this order, until the host is as it should be."""

    commands: tuple[Command, ...]


def wanted(node: Member, version: str, host: HostState) -> Told | Errand:
    """What the node says from now on, or what must be done first."""
    if is_as_asked(node.wish, version, host):
        return telling(version, node.wish, "in-force" if node.wish is Wish.ON else "off")
    said = node.state(version)
    if said == "failed" and node.told is not None:
        return node.told
    if said == "in-force":
        return telling(version, node.wish, "failed", f"it was in force and is no more: {host.why}")
    if node.wish is Wish.OFF:
        return Errand(("uninstall",))
    return Errand(("upgrade" if host.version not in (None, version) else "install", "switch-on"))


def is_as_asked(wish: Wish, version: str, host: HostState) -> bool:
    if wish is Wish.OFF:
        return host.version is None
    return host.in_force and host.version == version
