"""All nodes of the roll-out as the API server has them, and the way to a turn.

Everything is read when a turn may have come, and then one node or the Lease alone is looked at until it changes: many
nodes wait for long, and their Nodes are large.
"""

from __future__ import annotations

from typing import Final

from partage_base.kube import ApiServer, Node, NotFound, node_path, nodes_path
from partage_cli.rollout.lease import RolloutLease
from partage_cli.rollout.order import Hold, hold
from partage_cli.rollout.told import INSTALL, Member, member_of, members_of

_AT_A_TIME: Final = 500


class Fleet:
    """Its calls raise `KubeError` where the API server does not answer."""

    def __init__(self, server: ApiServer, lease: RolloutLease) -> None:
        self._server = server
        self.lease = lease
        self.size = 0
        """How many nodes there were when all were read last."""
        self._seen: dict[str, Member] = {}

    async def take_turn(self, me: str, version: str) -> Hold | None:
        """Why `me` has to wait; None: it holds the Lease.

        Between a look and the taking another node may have failed. A node says so before it gives the Lease back, so a
        look after the taking knows of the failure that made room.
        """
        if (before := await self._hold(me, version)) is not None:
            return before
        if not await self.lease.take(me):
            return Hold("another node was quicker", on=None)
        if (after := await self._hold(me, version)) is not None:
            await self.lease.give_back(me)
        return after

    async def has_changed(self, waited: Hold) -> bool:
        """Whether what the node waits for is otherwise than when it had to wait."""
        if waited.on is None:
            return not await self.lease.holder()
        try:
            now = member_of(await self._server.get(node_path(waited.on), Node))
        except NotFound:
            now = None
        return now != self._seen.get(waited.on)

    async def _hold(self, me: str, version: str) -> Hold | None:
        """Nodes first: one that then does not hold the Lease has given it back since, or is silent."""
        listing = await self._server.list(nodes_path(), Node, labels=INSTALL, limit=_AT_A_TIME)
        members = members_of(listing.items)
        self.size, self._seen = len(members), {member.name: member for member in members}
        if me not in self._seen:
            return Hold("the node's label was taken away", on=me)
        return hold(me, version, members, await self.lease.holder())
