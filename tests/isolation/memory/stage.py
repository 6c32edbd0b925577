"""Programs metered by the library: child processes on a simulated node with a broker that the test controls."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from partage_isolation.library.objects import OBJECTS, built
from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import CLIENT
from support.lender import Lender
from support.simgpu import NODE, Card, card, card_uuid, simulated_node
from support.steered import Steered

KIB: Final = 1 << 10
MIB: Final = 1 << 20
BLOCK: Final = 2 * MIB
CHUNK: Final = 32 * MIB
CARD_MIB: Final = 1024
CONTEXT: Final = 64 * MIB
LIMIT: Final = 512 * MIB
OUT_OF_MEMORY, NOT_INITIALIZED = 2, 3


def objects_in(folder: Path) -> str:
    """LD_PRELOAD of a container's programs."""
    return ":".join(str(folder / "lib" / name) for name in OBJECTS)


class Program(Steered):
    """A process that uses a node's driver as a container would."""

    def __init__(self, place: Place, script: Path = CLIENT, *, pass_fds: Sequence[int] = ()) -> None:
        env = {**place.node.environment, "LD_PRELOAD": objects_in(place.folder)}
        self.place = place
        super().__init__([sys.executable, script], env=env, refusals="cuda", pass_fds=pass_fds)

    @property
    def used(self) -> int:
        """Bytes of the first card that its library reports; queried each time."""
        return self.place.broker.amounts(self.pid).used

    @property
    def held(self) -> int:
        """Bytes of the first card that the card counts for it, without its context."""
        return self.place.held(self.pid)


class Place:
    """A node, a container's folder on it, and its broker."""

    def __init__(self, node: SimulatedNode, folder: Path, broker: Lender) -> None:
        self.node, self.folder, self.broker = node, folder, broker

    def held(self, pid: int, card_index: int = 0) -> int:
        """The card's figure for a process, without its context."""
        processes = self.node.status()[card_index].processes
        return next((one.bytes - CONTEXT for one in processes if one.pid == pid), 0)

    @contextmanager
    def program(self, *, device: int | None = 0, pass_fds: Sequence[int] = ()) -> Generator[Program]:
        """A program that computes on a device, unless that is None."""
        with Program(self, pass_fds=pass_fds) as started:
            if device is not None:
                started.ask(f"start({device})")
            yield started


B = TypeVar("B", bound=Lender)
SMALL: Final = card("t4", memory_mib=CARD_MIB, reserved_mib=0, context_mib=CONTEXT // MIB, module_mib=0)


@contextmanager
def preloaded(
    tmp_path: Path,
    cards: Sequence[Card],
    limits: Sequence[int],
    broker: Callable[[Path, Mapping[str, int]], B],
    library: Path | None = None,
) -> Generator[tuple[SimulatedNode, Path, B]]:
    """A node, the folder of a container that was granted one card per limit, and its broker."""
    folder = Path(tempfile.mkdtemp(prefix="pm-", dir="/tmp"))  # socket paths must be short
    try:
        (folder / "lib").mkdir()
        for name in OBJECTS:
            shutil.copy((library or built()) / name, folder / "lib" / name)
        granted = {card_uuid(NODE, index): limit for index, limit in enumerate(limits)}
        with simulated_node(tmp_path, cards=cards) as node, broker(folder / "broker", granted) as started:
            yield node, folder, started
    finally:
        shutil.rmtree(folder)


@contextmanager
def metered(
    tmp_path: Path, *, limits: Sequence[int] = (LIMIT,), cards: Sequence[Card] = (SMALL, SMALL)
) -> Generator[Place]:
    with preloaded(tmp_path, cards, limits, Lender) as (node, folder, broker):
        yield Place(node, folder, broker)
