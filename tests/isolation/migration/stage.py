"""Containers with movable memory, on a small card of a running broker, and programs in them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from partage_isolation.library.objects import built
from partage_isolation.wire.messages import MigrationReport
from simgpu.memory.programs import CLIENT
from support.isolated import Contained, Isolated, isolated
from support.simgpu import card
from support.steered import Steered
from unit.cli.program import partage as run

MIB: Final = 1 << 20
CARD: Final = 1024 * MIB
CONTEXT: Final = 64 * MIB


@contextmanager
def crowded(*, bus_gb_per_s: int = 12, card_bytes: int = CARD, context: int = CONTEXT) -> Generator[Isolated]:
    mib, context_mib = card_bytes // MIB, context // MIB
    small = card("t4", memory_mib=mib, reserved_mib=0, context_mib=context_mib, module_mib=0, bus_gb_per_s=bus_gb_per_s)
    with isolated(cards=(small,)) as place:
        place.tell_inventory(card_bytes)
        yield place


def movable(place: Isolated, memory: int, *, share: int = 400, moves: bool = True) -> Contained:
    made = place.prepare(memory, share=share, movable=moves)
    made.install(built())
    return made


@contextmanager
def program(container: Contained) -> Generator[Steered]:
    """A program with a context on the card."""
    env = container.environment
    with Steered([sys.executable, CLIENT], env=env, refusals="cuda") as started:
        started.ask("start()")
        yield started


def moving(container: Contained) -> MigrationReport:
    told = container.told().cards[0].moving
    assert told is not None
    return told


def partage(place: Isolated, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line on the node."""
    return run(place.root, *words)


def name_of(container: Contained) -> str:
    """The pod's name, as typed by a user."""
    return f"tests/{container.question.pod.name}"
