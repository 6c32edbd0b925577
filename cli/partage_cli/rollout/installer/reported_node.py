"""The installer's own Node: watches its labels, and writes the annotation with its progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    Listed,
    Lost,
    Node,
    Seen,
    Undecodable,
    follow,
    node_path,
    nodes_path,
)
from partage_cli.rollout.node_state import INSTALLED, InstallReport, Member, member_of

_FIRST_S: Final = 0.5
_MOST_S: Final = 8.0


class ReportedNode:
    def __init__(self, server: ApiServer, name: str, *, changed: Callable[[], None]) -> None:
        """`changed` is called when its label changed, or somebody else wrote its annotation."""
        self.name = name
        self._server, self._changed = server, changed
        self._version = -1
        self._repeats = Repeats(every_s=60)
        self.member: Member | None = None
        """None while it is unknown, or has no valid label."""

    async def run(self) -> None:
        backoff = Backoff(first_s=_FIRST_S, most_s=_MOST_S)
        only = f"metadata.name={self.name}"
        async for seen in follow(self._server, nodes_path(), Node, fields=only, backoff=backoff):
            self._take(seen)

    async def tell(self, told: InstallReport) -> None:
        """Writes the annotation, unless it already has this content; raises `KubeError`."""
        if self.member is not None and self.member.told == told:
            return
        body = {"metadata": {"annotations": {INSTALLED: told.text()}}}
        self._observe(await self._server.patch(node_path(self.name), body, Node), is_ours=True)

    def _take(self, seen: Seen[Node]) -> None:
        match seen:
            case Listed(items):
                self._observe(items[0] if items else None)
            case Changed(node):
                self._observe(node)
            case Deleted():
                self._observe(None)
            case Undecodable():
                self._repeats.say("the Node can't be read; what was known of it stands", node=self.name, why=seen.why)
            case Lost(error):
                self._repeats.failed("the API server can't be followed; it will be tried again", error)

    def _observe(self, node: Node | None, *, is_ours: bool = False) -> None:
        """Ignores states older than our last patch, which a watch may still deliver: a failure would look like work."""
        version = _version(node)
        if node is not None and version < self._version:
            return
        self._version = version
        before, self.member = self.member, None if node is None else member_of(node)
        if self.member != before and not is_ours:
            self._changed()


def _version(node: Node | None) -> int:
    """API servers count up, though they don't promise it; a version that is not a number is accepted."""
    text = "" if node is None else node.metadata.resource_version
    return int(text) if text.isascii() and text.isdecimal() else -1
