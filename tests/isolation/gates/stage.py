"""Programs behind a gate: child processes on a simulated node, with a broker that grants as the test says."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from isolation.memory.stage import LIMIT, NOT_INITIALIZED, SMALL, objects_in, preloaded
from partage_simgpu.node import SimulatedNode
from support.lender import Granter
from support.simgpu import driver_past
from support.steered import Steered

__all__ = ["A_WHILE_S", "NOT_INITIALIZED", "Place", "Program", "gated", "granted"]

CLIENT: Final = Path(__file__).with_name("client.py")
A_WHILE_S: Final = 0.3
"""Long enough for a forbidden event to happen."""


class Program(Steered):
    """A process that launches kernels on command."""

    def __init__(self, place: Place, *, cards: int = 1, more: Mapping[str, str] | None = None) -> None:
        env = {**place.node.environment, "LD_PRELOAD": objects_in(place.folder), **(more or {})}
        self.place = place
        super().__init__([sys.executable, CLIENT, str(cards), driver_past(place.node)], env=env, refusals="cuda")

    def took_s(self, what: str) -> float:
        """Seconds that a statement took in the process."""
        self.ask("began_s = time.monotonic()")
        self.ask(what)
        return float(self.ask("time.monotonic() - began_s"))


class Place:
    """A node, a container's folder on it, and its broker."""

    def __init__(self, node: SimulatedNode, folder: Path, broker: Granter) -> None:
        self.node, self.folder, self.broker = node, folder, broker

    @contextmanager
    def program(self, *, cards: int = 1, more: Mapping[str, str] | None = None) -> Generator[Program]:
        """A program on the first cards, with `more` in its environment."""
        with Program(self, cards=cards, more=more) as started:
            started.ask("start()")
            yield started


@contextmanager
def gated(tmp_path: Path, *, cards: int = 1, library: Path | None = None) -> Generator[Place]:
    """A container with memory of this many small cards."""
    with preloaded(tmp_path, (SMALL,) * cards, (LIMIT,) * cards, Granter, library) as (node, folder, broker):
        yield Place(node, folder, broker)


def granted(one: Program) -> Granter:
    """Give the card to the program alone."""
    one.ask("kernel()")
    one.place.broker.generous = True
    one.ask("launch()")
    one.place.broker.generous = False
    return one.place.broker
