"""Cost of the library for a program: runs `measure` or `launching` of the programs, and reads their output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.harness import STOLEN
from bench.isolation.programs import programs
from bench.measuring.rounds import Difference, Stolen, as_difference, quiet_rounds
from bench.measuring.surroundings import time_now

MOST_TIMES: Final = 10


@dataclass(frozen=True)
class Engaged:
    total: int
    pid: int
    interposed: bool

    def maps(self, path: Path) -> bool:
        return str(path) in Path(f"/proc/{self.pid}/maps").read_text()


@dataclass(frozen=True)
class Costs:
    told: Mapping[str, Any]

    def added(self, name: str) -> Difference:
        """The cost of a call beyond the driver's own, in nanoseconds."""
        return as_difference(self.told[f"{name}_driver"], self.told[f"{name}_called"])


def measured(
    environment: Mapping[str, str],
    *words: object,
    look: Callable[[Engaged], None] | None = None,
    program: str = "measure",
) -> Costs:
    """One measurement; repeated while other machines disturb it, and then the least disturbed one counts."""

    def once() -> Stolen[Costs]:
        before = time_now()
        found = _measured(environment, [programs() / program, *words], look)
        return Stolen(time_now().stolen_since(before), found)

    return quiet_rounds(once, 1, quiet=STOLEN, most=MOST_TIMES)[0].found


def _measured(
    environment: Mapping[str, str], words: Sequence[object], look: Callable[[Engaged], None] | None = None
) -> Costs:
    """Programs that use a card are checked before they begin."""
    process = subprocess.Popen(
        [*map(str, words)],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if look is not None:
            assert process.stdout is not None
            look(Engaged(**json.loads(process.stdout.readline() or '{"total": 0, "pid": 0, "interposed": false}')))
        told, _ = process.communicate("\n")
    finally:
        process.kill()
        process.communicate()
    if process.returncode:
        raise SystemExit(f"{words[0]} ended with {process.returncode}")
    return Costs(json.loads(told.splitlines()[-1]))
