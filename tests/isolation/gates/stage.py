"""Programs behind a gate: child processes on a simulated node, with a broker that grants as the test says."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import OBJECTS, built
from partage_simgpu.node import SimulatedNode
from support.granter import Granter, granter
from support.simgpu import NODE, card, card_uuid, simulated_node
from support.steered import Steered

CLIENT: Final = Path(__file__).with_name("client.py")
MIB: Final = 1 << 20
LIMIT: Final = 512 * MIB
NOT_INITIALIZED: Final = 3
A_WHILE_S: Final = 0.3
"""Long enough for what must not happen to happen."""


class Program(Steered):
    """A process that launches kernels as it is told."""

    def __init__(self, place: Place, *, cards: int = 1, more: Mapping[str, str] | None = None) -> None:
        env = {**place.node.environment, "LD_PRELOAD": place.preload, **(more or {})}
        self.place = place
        super().__init__([sys.executable, CLIENT, str(cards), place.node.library("cuda")], env=env, refusals="cuda")


class Place:
    """A node, a container's folder on it, and its broker."""

    def __init__(self, node: SimulatedNode, folder: Path, broker: Granter) -> None:
        self.node, self.folder, self.broker = node, folder, broker

    @property
    def preload(self) -> str:
        return ":".join(str(self.folder / "lib" / name) for name in OBJECTS)

    @contextmanager
    def program(self, *, cards: int = 1, more: Mapping[str, str] | None = None) -> Generator[Program]:
        """One that computes on the first cards, with `more` in its environment."""
        started = Program(self, cards=cards, more=more)
        try:
            started.ask("start()")
            yield started
        finally:
            started.close()


@contextmanager
def gated(tmp_path: Path, *, cards: int = 1, library: Path | None = None) -> Generator[Place]:
    """A container with memory of so many small cards."""
    small = card("t4", memory_mib=1024, reserved_mib=0, context_mib=64, module_mib=0)
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # sockets want short paths
    try:
        (folder / "lib").mkdir()
        for name in OBJECTS:
            shutil.copy((library or built()) / name, folder / "lib" / name)
        granted = {card_uuid(NODE, index): LIMIT for index in range(cards)}
        with simulated_node(tmp_path, cards=(small,) * cards) as node, granter(folder / "broker", granted) as broker:
            yield Place(node, folder, broker)
    finally:
        shutil.rmtree(folder)
