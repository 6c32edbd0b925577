"""All nodes of the roll-out as the API server has them, and the way to a turn.

Everything is read when a turn may have come, and then one node or slot alone is looked at until it changes: many nodes
wait for long, and their Nodes are large.
"""

from __future__ import annotations

from typing import Final

from partage_base.kube import ApiServer, Node, NotFound, node_path, nodes_path
from partage_cli.rollout.order import Hold, Take, turn
from partage_cli.rollout.slots import Slots
from partage_cli.rollout.told import INSTALL, Member, member_of, members_of

_AT_A_TIME: Final = 500


class Fleet:
    def __init__(self, server: ApiServer, slots: Slots, *, percent: int) -> None:
        self._server, self._percent = server, percent
        self.slots = slots
        self.size = 0
        """How many nodes there were when all were read last."""
        self._seen: dict[str, Member] = {}

    async def members(self) -> tuple[Member, ...]:
        """All of them, as of now; raises `KubeError`, as all of these."""
        listing = await self._server.list(nodes_path(), Node, labels=INSTALL, limit=_AT_A_TIME)
        members = members_of(listing.items)
        self.size, self._seen = len(members), {member.name: member for member in members}
        return members

    async def slot_for(self, me: str, version: str) -> int | Hold:
        """The slot that `me` has from now on, or why it has to wait.

        Between a look and the taking another node may have failed. A node says so before it gives its slot back, so a
        look after the taking knows of every failure that made room.
        """
        first = await self._turn(me, version)
        if isinstance(first, Hold):
            return first
        if not await self.slots.take(first.slot, me):
            return Hold("another node was quicker", on=first.slot)
        again = await self._turn(me, version)
        if isinstance(again, Hold):
            await self.slots.give_back(first.slot, me)
            return again
        return first.slot

    async def has_changed(self, hold: Hold) -> bool:
        """Whether what the node waits for is otherwise than when it had to wait."""
        if isinstance(hold.on, int):
            return not await self.slots.is_held(hold.on)
        try:
            now = member_of(await self._server.get(node_path(hold.on), Node))
        except NotFound:
            now = None
        return now != self._seen.get(hold.on)

    async def release(self, me: str) -> None:
        """Gives back what an installer of this node that died may have held."""
        for slot, holder in (await self.slots.held()).items():
            if holder == me:
                await self.slots.give_back(slot, me)

    async def _turn(self, me: str, version: str) -> Take | Hold:
        """Nodes first: one that then has no slot has given it back since, or is silent."""
        members = await self.members()
        if me not in self._seen:
            return Hold("the node's label was taken away", on=me)
        return turn(me, version, members, await self.slots.held(), percent=self._percent)
