"""Takes the lead from its holder, again and again, and keeps both replicas alive."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from typing import Final

from partage_base.kube import ApiServer, Lease, lease_path
from rig.identity.people import OUR_NAMESPACE
from soak.scheduling.history import Outage
from soak.scheduling.replicas import Replica

LOOK_S: Final = 0.2
DOWN_S: Final = 0.5
FROZEN_BEYOND_S: Final = 2.0
"""Beyond its Lease: the other one leads by then, and the frozen one wakes up believing that it still leads."""
PATIENCE_S: Final = 180.0
EVERY_FOURTH: Final = 4


class Overloaded(Exception):
    """The machine can't sustain the requested rate, so that nothing can be said about the schedulers."""


class Fight:
    """The leader, the kills, and the time in which nobody placed pods for it."""

    def __init__(
        self, server: ApiServer, replicas: Sequence[Replica], *, lease_s: float, is_calm: Callable[[], bool]
    ) -> None:
        """`is_calm`: no more pods are pending than usual."""
        self._server, self._replicas, self._is_calm = server, replicas, is_calm
        self._lease_s = lease_s
        self._holder = ""
        self._down: dict[str, float] = {}
        self.transitions = self.kills = self.freezes = self.lost_leads = 0
        self.outages: list[Outage] = []

    async def look(self) -> None:
        """Record the leader, and restart replicas that have ended."""
        await asyncio.sleep(LOOK_S)
        for replica in self._replicas:
            self._revive(replica)
        lease = await self._server.get(lease_path(OUR_NAMESPACE, "partage-scheduler"), Lease)
        holder = lease.spec.holder_identity or ""
        if holder != self._holder:
            self._holder, self.transitions = holder, self.transitions + 1

    async def strike(self, number: int) -> None:
        """Kill the leader once more; the second time and every fourth after that, freeze it first."""
        leader = await self._leader()
        began, holder = time.monotonic(), self._holder
        if number % EVERY_FOURTH == 1:
            await self._freeze(leader)
            await self._new_lead(holder)
            leader, holder = await self._leader(), self._holder
        leader.kill()
        self.kills += 1
        await self._new_lead(holder)
        await self.calm()
        self.outages.append(Outage(began, time.monotonic()))

    async def calm(self) -> None:
        """Wait until somebody leads and pods are placed."""
        await self._leader()
        await self._until(self._is_calm, "too many pods waited; this machine does not carry that: take a lower --rate")

    async def _freeze(self, leader: Replica) -> None:
        leader.send(signal.SIGSTOP)
        self.freezes += 1
        await asyncio.sleep(self._lease_s + FROZEN_BEYOND_S)
        leader.send(signal.SIGCONT)

    async def _leader(self) -> Replica:
        await self._until(lambda: any(each.leads_as(self._holder) for each in self._replicas), "nobody led")
        return next(each for each in self._replicas if each.leads_as(self._holder))

    async def _new_lead(self, old: str) -> None:
        await self._until(lambda: self._holder not in {"", old}, "nobody led after that one was killed")

    @staticmethod
    async def _until(condition: Callable[[], bool], otherwise: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():  # noqa: ASYNC110 - of processes and of what a watch tells; nobody sets an event
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise Overloaded(f"for {PATIENCE_S:g} s {otherwise}") from None

    def _revive(self, replica: Replica) -> None:
        if replica.status is None:
            return
        now = time.monotonic()
        since = self._down.setdefault(replica.name, now)
        if now - since >= DOWN_S:
            del self._down[replica.name]
            self.lost_leads += replica.status > 0  # by itself, with an error; a kill is a signal
            replica.start()
