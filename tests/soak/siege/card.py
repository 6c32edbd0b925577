"""A card that two containers share, one of them hostile. The card judges.

Nobody else is on the card: a process that is not the neighbour's is the attacker's, whether or not our components know
it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from partage_plugins.api.keys import CARDS, GPU_MEMORY, GPU_MILLI, LIMIT_MILLI
from partage_simgpu.status import CardStatus, statuses_of
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.nodes.machine import Machine
from soak.siege.innocents import NAMESPACE
from soak.siege.verdicts import Verdict, Wrong
from support.chain_stage import OURS, Chain
from support.isolation_stage import told_by
from support.machine_image import with_driver_program
from support.simgpu_stage import tell

PROGRAM: Final = Path(__file__).parent / "c/siege.c"
IMAGE: Final = "siege"
COMMAND: Final = "/usr/bin/siege"
NEIGHBOUR_MILLI: Final = 600
ATTACKER_MILLI: Final = 100
ATTACKER_BYTES: Final = 2 << 30
LEEWAY_BYTES: Final = 64 << 20
"""The broker's leeway: a process's growth beside its allocations, until the card reports it."""
EVERY_S: Final = 0.5
WINDOW_S: Final = 10.0
"""The attacker's limit holds in each window; an attempt takes a part of one."""
LEEWAY_SHARE: Final = 0.05
ATTEMPTS: Final = frozenset(
    ("leaked capture", "open capture", "context by path", "blocking launches", "memory by every path")
)


@dataclass
class Reading:
    """Both containers' card time at a moment."""

    at: float
    neighbour_ns: int
    attacker_ns: int


@dataclass
class SharedCard:
    chain: Chain
    neighbour: Pod
    attacker: Pod
    card: str = ""
    """The card's id."""
    most_bytes: int = 0
    readings: list[Reading] = field(default_factory=list[Reading])
    _busy_ns: dict[int, int] = field(default_factory=dict[int, int])
    _neighbours: set[int] = field(default_factory=set[int])
    _totals: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def machine(self) -> Machine:
        machine: Machine = self.chain.machine_of(self.neighbour)
        return machine

    async def watch(self) -> None:
        while True:
            await asyncio.to_thread(self._read)
            await asyncio.sleep(EVERY_S)

    def shares(self) -> tuple[float, float]:
        """The neighbour's and the attacker's part of the card, over the whole time of observation."""
        first, last = self.readings[0], self.readings[-1]
        took_ns = (last.at - first.at) * 1e9
        return (
            (last.neighbour_ns - first.neighbour_ns) / took_ns,
            (last.attacker_ns - first.attacker_ns) / took_ns,
        )

    def fullest(self) -> float:
        """The attacker's largest part of the card in any window."""
        most, begins = 0.0, 0
        for now in self.readings:
            while now.at - self.readings[begins].at > WINDOW_S:
                begins += 1
            first = self.readings[max(0, begins - 1)]
            if now.at - first.at >= WINDOW_S:
                most = max(most, (now.attacker_ns - first.attacker_ns) / ((now.at - first.at) * 1e9))
        return most

    def untried(self) -> list[str]:
        """Attempts that never completed."""
        ended = {
            name
            for line in self.attacker.logs().splitlines()
            for name, _, status in [line.rpartition(" ")]
            if status == "0"
        }
        return sorted(ATTEMPTS - ended)

    def wrong(self) -> Iterator[Wrong]:
        """Violations by the card's figures."""
        if self.most_bytes > ATTACKER_BYTES + LEEWAY_BYTES:
            yield Wrong(
                Verdict.CARD_MEMORY, f"the attacker had {self.most_bytes} bytes of its card, of {ATTACKER_BYTES}"
            )
        if (fullest := self.fullest()) > ATTACKER_MILLI / 1000 + LEEWAY_SHARE:
            yield Wrong(
                Verdict.CARD_TIME,
                f"the attacker had {fullest:.3f} of its card for {WINDOW_S:g} s, of {ATTACKER_MILLI / 1000}",
            )
        if (neighbour := self.shares()[0]) < NEIGHBOUR_MILLI / 1000 - LEEWAY_SHARE:
            yield Wrong(
                Verdict.CARD_TIME,
                f"its neighbour had {neighbour:.3f} of the card's time, of {NEIGHBOUR_MILLI / 1000}",
            )

    def _read(self) -> None:
        told = told_by(self.machine).containers
        mine = {process.pid for each in told if each.pod.uid == self.neighbour.uid for process in each.processes}
        self._neighbours |= mine
        card = self._card()
        for process in card.processes:
            more = process.busy_ns - self._busy_ns.get(process.pid, 0)
            self._busy_ns[process.pid] = process.busy_ns
            self._totals[process.pid not in self._neighbours] += more
        others = sum(process.bytes for process in card.processes if process.pid not in self._neighbours)
        self.most_bytes = max(self.most_bytes, others)
        self.readings.append(Reading(time.monotonic(), *self._totals))

    def _card(self) -> CardStatus:
        cards = statuses_of(tell(self.machine, "status"))
        return next(card for card in cards.values() if any(each.pid in self._neighbours for each in card.processes))


def shared_card(chain: Chain) -> SharedCard:
    chain.rig.registry.push(with_driver_program(COMMAND, PROGRAM), IMAGE)
    neighbour = _pod(chain, "neighbour", {GPU_MILLI: str(NEIGHBOUR_MILLI), GPU_MEMORY: "4Gi"})
    neighbour.wait_running(within_s=120)
    card = chain.grant(neighbour).card
    beside = {LIMIT_MILLI: str(ATTACKER_MILLI), CARDS: card}
    wants = {GPU_MILLI: str(ATTACKER_MILLI), GPU_MEMORY: "2Gi"}
    attacker = _pod(chain, "attacker", wants, restart="Always", annotations=beside).wait_running(within_s=120)
    return SharedCard(chain, neighbour, attacker, card)


def _pod(chain: Chain, mode: str, limits: dict[str, str], **said: Any) -> Pod:
    fields: dict[str, Any] = {"image": IMAGE, "command": [COMMAND, mode], "scheduler": OURS, "limits": limits, **said}
    return chain.rig.cluster.pods.create(NAMESPACE, a_pod(mode, **fields))
