"""The progress of a roll-out, for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from partage_cli.rollout.node_state import Member, State
from partage_cli.rollout.order import Stoppage, canary, stoppage
from partage_cli.tables import printable, table

_HEADER = ("NODE", "VERSION", "STATE", "WHY")


class NodeProgress(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    version: str | None
    """The version that it reports on."""
    state: State | Literal["not-in-force"] | None
    """`not-in-force` if the installer is done but the cluster disagrees; None if its installer has reported nothing
    since its label changed."""
    why: str = ""


class RolloutProgress(msgspec.Struct, frozen=True, kw_only=True):
    version: str | None
    """The target version; None if it is unknown."""
    nodes: tuple[NodeProgress, ...]
    stopped: Stoppage | None = None
    canary: str | None = None
    """The labelled node that comes first, until it is in force."""

    @property
    def is_done(self) -> bool:
        """Whether every node has the state that its label asks for, at this version."""
        return all(node.state in ("in-force", "off") and node.version == self.version for node in self.nodes)


def progress(
    members: Sequence[Member],
    holder: str,
    version: str | None,
    *,
    why_not: Callable[[str], str] = lambda _: "",
    why_silent: Callable[[str], str] = lambda _: "",
) -> RolloutProgress:
    """Progress towards `version`, else towards the version that most nodes report on; `holder` has the Lease.

    `why_not` returns why the cluster considers a node not in force; `why_silent`, why its installer has reported
    nothing.
    """
    aim = version or _most_told(members)
    nodes = tuple(_of_node(member, why_not, why_silent) for member in members)
    if aim is None:
        return RolloutProgress(version=None, nodes=nodes)
    stopped = stoppage(aim, members, holder)
    first = canary(aim, members) if stopped is None else None
    return RolloutProgress(version=aim, nodes=nodes, stopped=stopped, canary=first)


def as_table(found: RolloutProgress) -> str:
    return table(
        _HEADER,
        ((each.node, each.version or "-", each.state or "-", printable(each.why) or "-") for each in found.nodes),
    )


def as_line(found: RolloutProgress) -> str:
    """A summary in one line."""
    if not found.nodes:
        return "no node is labelled: kubectl label node NODE partage.dev/install=yes"
    if found.version is None:
        return f"{len(found.nodes)} nodes are labelled, and no installer has spoken yet"
    at_aim = [node for node in found.nodes if node.version == found.version]
    counts = Counter(node.state for node in at_aim)
    done = counts.pop("in-force", 0) + counts.pop("off", 0)
    parts = [f"{done} of {len(found.nodes)} nodes are as asked at {found.version}"]
    parts += [f"{count} {state}" for state, count in sorted(counts.items(), key=str) if state is not None]
    if silent := len(found.nodes) - done - sum(counts.values()):
        parts.append(f"{silent} not heard of at this version")
    if found.canary is not None:
        parts.append(f"the canary is {found.canary}")
    if found.stopped is not None:
        parts.append(f"stopped: {found.stopped.node} {printable(found.stopped.why)}")
    return "; ".join(parts)


def _of_node(member: Member, why_not: Callable[[str], str], why_silent: Callable[[str], str]) -> NodeProgress:
    told, name = member.told, member.name
    if told is None or told.label is not member.wish:
        return NodeProgress(node=name, version=None, state=None, why=why_silent(name))
    if told.state == "in-force" and (why := why_not(name)):
        return NodeProgress(node=name, version=told.version, state="not-in-force", why=why)
    return NodeProgress(node=name, version=told.version, state=told.state, why=told.why)


def _most_told(members: Sequence[Member]) -> str | None:
    told = Counter(member.told.version for member in members if member.told is not None)
    return max(sorted(told), key=lambda version: told[version], default=None)
