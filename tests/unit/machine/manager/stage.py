"""Managers, one after the other, over one runtime in memory, with the real decider and two cards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import SigningKey
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.managed import ManagedPod
from partage_cli.machine.manager.news import News
from partage_cli.machine.manager.pods import Pods
from partage_cli.machine.manager.runs import Runs
from partage_cli.machine.pods.pod import Amounts, Container, Metadata, Pod, Spec
from partage_cli.machine.wire.messages import Answer, Progress, Run
from partage_oci.placement import Placement
from partage_plugins.codecs import key_id
from partage_plugins.registry.registry import Registry
from partage_plugins.vocabulary import GPU, Card, CardId, GpuPart, Inventory, NodeName
from partage_scheduler.core import plugins
from unit.machine.manager.runtime_model import Line, Model

GIB: Final = 1 << 30
NODE: Final = NodeName("lone")


def card(number: int) -> Card:
    return Card(
        id=CardId(f"GPU-{number}"),
        index=number,
        model="NVIDIA H100",
        memory_bytes=80 * GIB,
        compute_capability="9.0",
        pci=f"0000:{number:02x}:00.0",
        pool="shared",
    )


def inventory(cards: int) -> Inventory:
    part = GpuPart(driver="580.65.06", cuda="13.0", cards=tuple(map(card, range(cards))))
    return Inventory(kinds={GPU.name: part})


@cache
def registry() -> Registry:
    return plugins()


@cache
def key() -> SigningKey:
    private = Ed25519PrivateKey.generate()
    return SigningKey(key_id(private.public_key()), private)


def placement(cards: int = 1) -> Placement:
    made = Placement(NODE, registry())
    made.take_in(inventory(cards))
    return made


def container(name: str = "main", **limits: int | str) -> Container:
    named: Mapping[str, str | int] = {f"partage.dev/{key.replace('_', '-')}": value for key, value in limits.items()}
    return Container(name=name, image="busybox", resources=Amounts(limits=named))


def pod(name: str = "a", *containers: Container, inits: tuple[Container, ...] = (), share: int = 300) -> Pod:
    apps = containers or (container(gpu_milli=share) if share else container(),)
    return Pod(metadata=Metadata(name=name), spec=Spec(containers=apps, init_containers=inits))


class Shelf:
    """A `Store` that has every image, and a `Stock` that is known."""

    def __init__(self) -> None:
        self.pulled: list[str] = []
        self.lacks: set[str] = set()

    def refresh(self) -> str:
        return ""

    async def has(self, image: str) -> bool:
        return image not in self.lacks

    async def pull(self, image: str, _say: object) -> None:
        self.pulled.append(image)
        self.lacks.discard(image)


@dataclass(frozen=True)
class Manager:
    pods: Pods
    admission: Admission
    runs: Runs
    placement: Placement
    shelf: Shelf
    line: Line
    said: list[Answer]

    async def run(self, question: Run) -> ManagedPod:
        return await self.runs.run(question, self._say)

    async def start(self, managed: ManagedPod) -> None:
        await self.runs.start(managed, self._say)

    async def _say(self, answer: Answer) -> None:
        self.said.append(answer)

    @property
    def queued(self) -> list[Progress]:
        return [each for each in self.said if isinstance(each, Progress) and each.step == "queue"]


@asynccontextmanager
async def manager(model: Model, *, cards: int = 1, dies_at: int | None = None) -> AsyncGenerator[Manager]:
    line = Line(model, dies_at=dies_at)
    decided = placement(cards)
    admission = Admission(decided, NODE, tuple(registry().kinds), key())
    pods = Pods(line, admission, News())
    shelf = Shelf()
    runs = Runs(pods, admission, shelf, shelf, Path("/"))  # type: ignore[arg-type]  # of both only what runs ask
    try:
        yield Manager(pods, admission, runs, decided, shelf, line, [])
    finally:
        await pods.close()


async def settled(*conditions: Callable[[], bool]) -> None:
    """Gives way until they hold; the test's own deadline ends it where they never do."""
    while not all(condition() for condition in conditions):  # noqa: ASYNC110  of the model, which has no events
        await asyncio.sleep(0.001)


def given_milli(found: Manager) -> dict[str, int]:
    return {room.card.id: room.given_milli for room in found.placement.rooms()}


def over_committed(found: Manager) -> bool:
    return any(room.given_milli > 1000 or room.given_bytes > room.card.memory_bytes for room in found.placement.rooms())
