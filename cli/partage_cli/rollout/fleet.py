"""The nodes of the roll-out in the API server, and how one of them gets its turn.

All nodes are read when a turn may have come. Afterwards only one node or the Lease is polled until it changes: many
nodes wait for long, and Node objects are large.
"""

from __future__ import annotations

from typing import Final

from partage_base.kube import ApiServer, Node, NotFound, node_path, nodes_path
from partage_cli.rollout.lease import RolloutLease
from partage_cli.rollout.node_state import INSTALL, Member, member_of, members_of
from partage_cli.rollout.order import Hold, hold

_AT_A_TIME: Final = 500


class Fleet:
    """The fleet; its calls raise `KubeError` if the API server does not answer."""

    def __init__(self, server: ApiServer, lease: RolloutLease) -> None:
        self._server = server
        self.lease = lease
        self.size = 0
        """Number of nodes when all were last read."""
        self._seen: dict[str, Member] = {}

    async def take_turn(self, me: str, version: str) -> Hold | None:
        """Takes the Lease; returns why `me` has to wait, or None if it holds the Lease.

        Another node may have failed between the check and the taking. A node reports a failure before it gives the
        Lease back, so the check after the taking sees the failure that freed the Lease.
        """
        if (before := await self._hold(me, version)) is not None:
            return before
        if not await self.lease.take(me):
            return Hold("another node was quicker", on=None)
        if (after := await self._hold(me, version)) is not None:
            await self.lease.give_back(me)
        return after

    async def has_changed(self, waited: Hold) -> bool:
        """Whether the object that the node waits for has changed since."""
        if waited.on is None:
            return not await self.lease.holder()
        try:
            now = member_of(await self._server.get(node_path(waited.on), Node))
        except NotFound:
            now = None
        return now != self._seen.get(waited.on)

    async def _hold(self, me: str, version: str) -> Hold | None:
        """Reads nodes first: a node that no longer holds the Lease then has given it back since, or is silent."""
        listing = await self._server.list(nodes_path(), Node, labels=INSTALL, limit=_AT_A_TIME)
        members = members_of(listing.items)
        self.size, self._seen = len(members), {member.name: member for member in members}
        if me not in self._seen:
            return Hold("the node's label was taken away", on=me)
        return hold(me, version, members, await self.lease.holder())
