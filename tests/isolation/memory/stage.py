"""Programs whose library meters them: child processes on a simulated node with a broker of the test's own."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import OBJECTS, built
from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import CLIENT
from support.lender import Lender, lender
from support.simgpu import NODE, card, card_uuid, simulated_node
from support.steered import Steered

KIB: Final = 1 << 10
MIB: Final = 1 << 20
BLOCK: Final = 2 * MIB
CHUNK: Final = 32 * MIB
CARD_MIB: Final = 1024
CONTEXT: Final = 64 * MIB
LIMIT: Final = 512 * MIB
OUT_OF_MEMORY, NOT_INITIALIZED = 2, 3


class Program(Steered):
    """A process that uses the driver of a node as a container would."""

    def __init__(self, place: Place, script: Path = CLIENT, *, pass_fds: Sequence[int] = ()) -> None:
        env = {**place.node.environment, "LD_PRELOAD": place.preload}
        self.place = place
        super().__init__([sys.executable, script], env=env, refusals="cuda", pass_fds=pass_fds)

    @property
    def used(self) -> int:
        """Bytes that its library says it holds of the first card; asked anew."""
        return self.place.broker.amounts(self.pid).used

    @property
    def held(self) -> int:
        """Bytes of the first card that the card counts for it, without its context."""
        return self.place.held(self.pid)


class Place:
    """A node, a container's folder on it, and its broker."""

    def __init__(self, node: SimulatedNode, folder: Path, broker: Lender) -> None:
        self.node, self.folder, self.broker = node, folder, broker

    @property
    def preload(self) -> str:
        return ":".join(str(self.folder / "lib" / name) for name in OBJECTS)

    def held(self, pid: int, card_index: int = 0) -> int:
        """What the card counts for a process, without its context."""
        processes = self.node.status()[card_index].processes
        return next((one.bytes - CONTEXT for one in processes if one.pid == pid), 0)

    @contextmanager
    def program(self, *, device: int | None = 0, pass_fds: Sequence[int] = ()) -> Generator[Program]:
        """One that computes on a device, unless that is None."""
        started = Program(self, pass_fds=pass_fds)
        try:
            if device is not None:
                started.ask(f"start({device})")
            yield started
        finally:
            started.close()


@contextmanager
def metered(
    tmp_path: Path, *, limits: Sequence[int] = (LIMIT,), model: str = "t4", library: Path | None = None
) -> Generator[Place]:
    """Two small cards, of which a container was granted as many as there are limits."""
    small = card(model, memory_mib=CARD_MIB, reserved_mib=0, context_mib=CONTEXT // MIB, module_mib=0)
    folder = Path(tempfile.mkdtemp(prefix="pm-", dir="/tmp"))  # sockets want short paths
    try:
        (folder / "lib").mkdir()
        for name in OBJECTS:
            shutil.copy((library or built()) / name, folder / "lib" / name)
        granted = {card_uuid(NODE, index): limit for index, limit in enumerate(limits)}
        with simulated_node(tmp_path, cards=(small, small)) as node, lender(folder / "broker", granted) as broker:
            yield Place(node, folder, broker)
    finally:
        shutil.rmtree(folder)
