"""A broker that serves an innocent container and is flooded by eight of one user, all on the same node.

The innocent one is a new process five times a second, as in a program of many short processes. It must be registered,
get the memory that it asks for, and wait no longer than its neighbours' right to the broker explains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from partage_isolation.wire.packets import Result
from partage_plugins.api.keys import CARDS, GPU_MEMORY, GPU_MILLI
from rig import images
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.identity.people import ALICE, TEAM
from rig.images.bases import compiled
from rig.rig import CHECKOUT
from soak.scheduling.history import at_share
from soak.siege.innocents import NAMESPACE
from soak.siege.verdicts import Verdict, Wrong
from support.chain_stage import OURS, Chain

PROGRAM: Final = Path(__file__).parent / "c/broker.c"
IMAGE: Final = "broker-siege"
COMMAND: Final = "/usr/bin/broker"
FLOODERS: Final = 8
LONGEST_S: Final = 1.0
"""The longest reply at p99; if the machine is busy, three times the calm one."""
TIMES: Final = 3.0
_OK: Final = str(int(Result.OK))


class Asked(NamedTuple):
    """One process of the innocent container."""

    at: float
    took_s: float
    is_served: bool


@dataclass
class Brokered:
    chain: Chain
    card: str
    """Shared by all of them and nobody else."""
    innocent: Pod
    flooders: list[Pod] = field(default_factory=list[Pod])
    asked: list[Asked] = field(default_factory=list[Asked])
    pieces: int = 0
    """The most that one container made."""
    greetings: int = 0

    async def flood(self) -> None:
        """Run until cancelled; then read everything that the containers wrote."""
        await asyncio.to_thread(self._begin)
        await asyncio.Event().wait()

    def read(self) -> None:
        self.asked = list(_asked(self.innocent.logs()))
        for line in (line for pod in self.flooders for line in pod.logs().splitlines()):
            match line.split():
                case [_, "pieces", made, _]:
                    self.pieces = max(self.pieces, int(made))
                case [_, "greeted", times]:
                    self.greetings += int(times)
                case _:
                    pass

    def since(self, moment: float) -> tuple[Sequence[Asked], Sequence[Asked]]:
        """Before it and from then on."""
        return [each for each in self.asked if each.at < moment], [each for each in self.asked if each.at >= moment]

    def wrong(self, hostile_since: float) -> Iterator[Wrong]:
        calm, hostile = self.since(hostile_since)
        if refused := sum(not each.is_served for each in hostile):
            yield Wrong(Verdict.BROKER, f"{refused} of {len(hostile)} processes beside a flood were not served")
        alone_s, beside_s = p99(calm), p99(hostile)
        if beside_s > max(LONGEST_S, TIMES * alone_s):
            yield Wrong(Verdict.BROKER, f"the broker took {beside_s:.3f} s at p99 beside a flood, {alone_s:.3f} alone")

    def unproved(self, hostile_since: float) -> Iterator[str]:
        calm, hostile = self.since(hostile_since)
        if not calm or not hostile:
            yield "the broker was asked by no innocent process"
        if not self.pieces:
            yield "no container filled its rows of the broker"
        if not self.greetings:
            yield "no container came to the broker again and again"

    def _begin(self) -> None:
        cluster = self.chain.rig.cluster.as_person(ALICE)
        for number in range(FLOODERS):
            fields = _fields("floods", self.card, restart="Always")
            self.flooders.append(cluster.pods.create(TEAM, a_pod(f"floods-{number}", **fields)))


def p99(asked: Sequence[Asked]) -> float:
    return at_share(sorted(each.took_s for each in asked), 0.99) if asked else 0.0


def brokered(chain: Chain, *, beside: str) -> Brokered:
    """Start it on the other card of this one's node."""
    program = compiled(PROGRAM, flags=("-std=gnu11", f"-I{CHECKOUT / 'isolation/preload/core'}"))
    chain.rig.registry.push(images.preloadable().with_files({COMMAND: program}), IMAGE)
    cards = [{each.id for each in stage.cards()} for stage in chain.advertisers.values()]
    (other,) = next(each - {beside} for each in cards if beside in each)
    innocent = chain.rig.cluster.pods.create(NAMESPACE, a_pod("asks", **_fields("asks", other)))
    innocent.wait_running(within_s=120)
    return Brokered(chain, other, innocent)


def _fields(mode: str, card: str, **said: Any) -> Any:
    limits = {GPU_MILLI: "1", GPU_MEMORY: "1Gi"}
    return {
        "image": IMAGE,
        "command": [COMMAND, mode],
        "scheduler": OURS,
        "requests": {"cpu": "1m"},
        "limits": limits,
        "annotations": {CARDS: card},
        **said,
    }


def _asked(text: str) -> Iterator[Asked]:
    for line in text.splitlines():
        match line.split():
            case [at, "asked", took_s, known, lent]:
                yield Asked(float(at), float(took_s), (known, lent) == (_OK, _OK))
            case _:
                pass
