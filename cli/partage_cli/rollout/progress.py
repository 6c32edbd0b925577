"""The progress of a roll-out, for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

import msgspec

from partage_cli.own_pods import OwnPod
from partage_cli.rollout.node_state import Member, State
from partage_cli.rollout.order import Stoppage, canary, stoppage
from partage_cli.tables import printable, table

DAEMON_SET: Final = "partage-installer"
INSTALLERS: Final = f"app.kubernetes.io/name={DAEMON_SET},app.kubernetes.io/component=installer"
_HEADER: Final = ("NODE", "VERSION", "STATE", "WHY")
_LONGEST: Final = 300


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


def why_silent(node: str, *, pods: Iterable[OwnPod], namespace: str) -> str:
    """Why a node's installer has reported nothing, from its pod."""
    pod = next((each for each in pods if each.spec.node_name == node), None)
    if pod is None:
        return f"no installer is on it: kubectl -n {namespace} describe daemonset {DAEMON_SET}"
    look = f"kubectl -n {namespace} logs {pod.metadata.name}"
    for container in pod.status.container_statuses:
        ended = container.state.terminated or container.last_state.terminated
        if ended is not None:
            return f"its installer ended with exit code {ended.exit_code}: {_last_line(ended.message) or look}"
        if (waits := container.state.waiting) is not None:
            return f"its installer waits: {waits.reason} {_last_line(waits.message)}".rstrip()
    if pod.status.phase != "Running":
        return f"its installer is {pod.status.phase}: {_last_line(pod.status.message) or pod.metadata.name}"
    return f"its installer runs and has said nothing; does it reach the API server? {look}"


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


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:_LONGEST] if lines else ""
