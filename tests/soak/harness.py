"""The frame of every soak `tests/soak/NAME.py`: its options, its progress output, and its end.

    asked = options("pools", minutes=10.0, seed=1)
    for _ in steps(asked.minutes, lambda: f"{made} pods"):
        ...
    return ended("pools", wrong, pods=made)

Output goes to stdout: at the end a table of figures, everything that was wrong, and as the last line one JSON object.
Exit status: 0 when all held, 3 when something was wrong or nothing was proved.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from bench.measuring.table import columns

EXIT_WRONG: Final = 3
MOST_TOLD: Final = 20
"""Lines about wrong results; the figures have their total."""
_MINUTE_S: Final = 60.0


def options(name: str, **defaults: float | str) -> argparse.Namespace:
    """The command line: an option for each default, of its type."""
    parser = argparse.ArgumentParser(prog=f"soak {name}", description=f"tests/soak/{name}.py says what it does")
    for option, default in defaults.items():
        flag = f"--{option.replace('_', '-')}"
        parser.add_argument(flag, type=type(default), default=default, help=f"by default {default}")
    return parser.parse_args()


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def steps(minutes: float, so_far: Callable[[], str]) -> Iterator[int]:
    """The numbers of steps, from 1, until the time is up; prints the progress each minute."""
    began = told = time.monotonic()
    number = 0
    while (now := time.monotonic()) < began + minutes * _MINUTE_S:
        if now - told >= _MINUTE_S:
            told = now
            say(so_far())
        number += 1
        yield number


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Concurrent work; a failure in it fails everything."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


def ended(name: str, wrong: Sequence[object], unproved: Mapping[str, object] | None = None, /, **figures: Any) -> int:
    """Print the figures and everything wrong; return the exit status.

    `unproved` is the message when nothing was proved.
    """
    idle = [what for what, happened in (unproved or {}).items() if not happened]
    say(columns([[each.replace("_", " "), f"{value:g}"] for each, value in figures.items() if _is_number(value)]))
    say(*(f"WRONG: {each}" for each in wrong[:MOST_TOLD]), *(f"PROVES NOTHING: {what}" for what in idle))
    say(json.dumps({"soak": name, "holds": not wrong and not idle, "wrong": len(wrong), "idle": idle, **figures}))
    return EXIT_WRONG if wrong or idle else 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
