"""Made-up nodes: they send heartbeats, fall silent, lose and regain cards, are lost and return."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from partage_base.kube import ApiServer, Conflict, lease_path, leases_path, node_path, nodes_path
from partage_plugins.api import Card, Inventory, Ready
from partage_plugins.api.keys import INVENTORY
from rig.identity.people import OUR_NAMESPACE
from support.gpu_fleet import card
from support.objects import lease_body, node_body, of_cards, written

CARDS: Final = 8
BEAT_EVERY_S: Final = 10.0
SILENT_S: Final = 60.0
LOST_S: Final = 3.0
FAULTS: Final = ("lost", "degraded: row remapping is pending", "missing", "not ready")


class Fleet:
    """All nodes. `collected` is called with a node that is gone: its pods are deleted."""

    def __init__(
        self, server: ApiServer, chance: random.Random, count: int, *, collected: Callable[[str], None]
    ) -> None:
        self._server, self._chance, self._collected = server, chance, collected
        self._names = [f"n{number:04}" for number in range(count)]
        self._silent_until: dict[str, float] = {}
        self._broken: dict[str, str] = {}
        self.bad_since: dict[str, float] = {}
        """Cards that must not be given away, and since when that has been published."""
        self._away = ""
        self.changes = self.losses = 0

    async def build(self, at_once: int) -> None:
        names = iter(self._names)

        async def work() -> None:
            for name in names:
                await self._create(name)
                await self._server.create(leases_path(OUR_NAMESPACE), lease_body(name), msgspec.Raw)

        await asyncio.gather(*(work() for _ in range(at_once)))

    async def beat(self) -> None:
        """One heartbeat for each node, spread over the interval; silent nodes are skipped."""
        for name in self._names:
            if self._silent_until.get(name, 0) < time.monotonic():
                path = lease_path(OUR_NAMESPACE, name)
                await self._server.patch(path, {"spec": lease_body(name)["spec"]}, msgspec.Raw)
            await asyncio.sleep(BEAT_EVERY_S / len(self._names))

    async def change(self) -> None:
        """Fail a card and repair another; now and then silence a node."""
        await asyncio.sleep(1)
        if len(self._broken) > len(self._names) // 10:
            await self._mend(next(iter(self._broken)))
        await self._break(self._some(), self._chance.choice(FAULTS))
        if self._chance.random() < 0.1:
            self._silent_until[self._some()] = time.monotonic() + SILENT_S

    async def lose(self) -> None:
        """Delete a node, collect its pods, and add another one with its name."""
        await asyncio.sleep(5)
        self._away = name = self._some()
        await self._server.delete(node_path(name))
        await asyncio.sleep(LOST_S * self._chance.random())
        self._collected(name)
        await asyncio.sleep(LOST_S * self._chance.random())
        self._broken.pop(name, None)
        await self._create(name)
        self._away, self.losses = "", self.losses + 1

    async def mend_all(self) -> None:
        self._silent_until.clear()
        if self._away:
            with suppress(Conflict):  # the replica that lost it was killed, perhaps after the node was back
                await self._create(self._away)
        for name in list(self._broken):
            await self._mend(name)

    def _some(self) -> str:
        return self._chance.choice([name for name in self._names if name != self._away])

    async def _create(self, name: str) -> None:
        self._forgive(name)
        await self._server.create(nodes_path(), node_body(name, self._inventory(name, "")), msgspec.Raw)

    async def _break(self, name: str, fault: str) -> None:
        self._broken[name] = fault
        bad = [_id(name, place) for place in (range(CARDS) if fault == "not ready" else (0,))]
        self._forgive(name, but=bad)
        await self._say(name, fault)
        since = time.monotonic()
        for card_id in bad:
            self.bad_since.setdefault(card_id, since)

    async def _mend(self, name: str) -> None:
        self._broken.pop(name, None)
        self._forgive(name)
        await self._say(name, "")

    async def _say(self, name: str, fault: str) -> None:
        text = written(self._inventory(name, fault))
        self.changes += 1
        await self._server.patch(node_path(name), {"metadata": {"annotations": {INVENTORY: text}}}, msgspec.Raw)

    def _forgive(self, name: str, *, but: Sequence[str] = ()) -> None:
        for place in range(CARDS):
            if _id(name, place) not in but:
                self.bad_since.pop(_id(name, place), None)

    @staticmethod
    def _inventory(name: str, fault: str) -> Inventory:
        cards = [card(_id(name, place)) for place in range(CARDS)]
        if fault == "missing":
            del cards[0]
        elif fault not in {"", "not ready"}:
            cards[0] = _with_health(cards[0], fault)
        return of_cards(cards, ready=Ready(crishim=fault != "not ready", broker=True))


def _id(name: str, place: int) -> str:
    return f"{name}-{place}"


def _with_health(whole: Card, health: str) -> Card:
    return replace(whole, health=health)
