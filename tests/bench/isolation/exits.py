"""Metered programs that end while the card has work of theirs, by each way to end (`exits.c` of the programs)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.isolation.place import Container, Place, a_place, flooded
from bench.isolation.programs import programs
from support.simgpu import card

WAYS: Final = ("return", "exit", "quick", "thread", "last", "busy")
LAUNCHES_ON: Final = "busy"
"""A thread of this program calls a driver that may have shut down; in the other ways none does."""
LATE_CALLS_ABORT: Final = {"SIMGPU_ABORTS_LATE_CALLS": "1"}
HANGS_AFTER_S: Final = 30.0
"""Not a bar for time: on an idle machine nothing takes a hundredth of it. Tools such as valgrind are slow."""
UNDER_A_TOOL_S: Final = 10 * HANGS_AFTER_S
_MEMORY_MIB, _CONTEXT_MIB = 8192, 16
_HALF: Final = 500


@dataclass(frozen=True)
class Tool:
    """How a program is run: the command before it, its file, and its environment."""

    name: str
    program: Path
    before: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    hangs_after_s: float = UNDER_A_TOOL_S


def plain() -> Tool:
    return Tool("no tool", programs() / "exits", hangs_after_s=HANGS_AFTER_S)


@contextmanager
def ends(objects: Path | None = None) -> Generator[Container]:
    """A container with half of a card's time, which another one floods."""
    with a_place(cards=(card("h100", context_mib=_CONTEXT_MIB),)) as place:
        one = place.container(memory_mib=_MEMORY_MIB, share=_HALF, limit=_HALF, objects=objects)
        with flooded(place, place.container(memory_mib=_MEMORY_MIB, share=_HALF)):
            yield one
        _was_metered(place, one)


def wrong_end(container: Container, way: str, tool: Tool) -> str | None:
    """Describes what went wrong at an end, or None."""
    environment = {**container.environment, **(tool.environment or {})}
    if way != LAUNCHES_ON:
        environment |= LATE_CALLS_ABORT
    argv = [*tool.before, str(tool.program), way]
    try:
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=False, timeout=tool.hangs_after_s
        )
    except subprocess.TimeoutExpired:
        return f"{way}, {tool.name}: it hangs"
    if done.returncode or done.stderr:
        return f"{way}, {tool.name}: it ended with {done.returncode}: {done.stderr}"
    said = json.loads(done.stdout)
    if said["total"] != container.limit:
        return f"{way}, {tool.name}: it was not metered: {said}"
    return None


def _was_metered(place: Place, container: Container) -> None:
    time = place.held(container).time
    assert time is not None
    assert time.timeslices
