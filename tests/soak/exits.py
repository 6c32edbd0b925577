"""A thousand metered programs exit while the card has work of them, without waiting, by each way to exit.

    make soak-exits             # 1,000, and 60 under each tool; some ten minutes
    tools/named soak exits --ends 60 --tooled 6

They have half of a simulated card's time, and another container floods it. A call of the driver after its shutdown
kills the program, so the library must not make one. Then fewer do so under valgrind, and with sanitizer builds of the
library and the programs. It prints its findings and, as its last line, one JSON object. Exit status: 0 when all is
well, 3 when one exited badly or not at all, or a tool reported something.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from bench.isolation.exits import WAYS, Tool, ends, plain, wrong_end
from bench.isolation.place import Container
from bench.isolation.programs import programs
from partage_simgpu.build import READY_MADE
from soak.harness import ended, options, say
from support.sanitized import OPTIONS, SANITIZERS, VALGRIND, preload, runtimes, small_driver
from support.sanitized import programs as sanitized_programs

AT_ONCE: Final = 4


def valgrind() -> Tool:
    return Tool("valgrind", programs() / "exits", before=VALGRIND)


def sanitized(sanitizer: str, container: Container) -> Tool:
    program = sanitized_programs(sanitizer) / "exits"
    first = f"{runtimes(sanitizer)}:{container.preloaded}"
    return Tool(sanitizer, program, environment={**OPTIONS, "LD_PRELOAD": first})


def wrong_ends(count: int, tool: Callable[[Container], Tool], objects: Path | None = None) -> list[str]:
    """Run this many, some at once."""
    with ends(objects) as container, ThreadPoolExecutor(AT_ONCE) as pool:
        chosen = tool(container)
        done = pool.map(lambda number: wrong_end(container, WAYS[number % len(WAYS)], chosen), range(count))
        wrong = [each for each in done if each is not None]
    say(f"{chosen.name}: {count} ended, {len(wrong)} badly")
    return wrong


def main() -> int:
    asked = options("exits", ends=1000, tooled=60)
    wrong = wrong_ends(asked.ends, lambda _: plain())
    os.environ[READY_MADE] = str(small_driver())
    tools = [*SANITIZERS]
    if shutil.which("valgrind"):
        tools.append("valgrind")
        wrong += wrong_ends(asked.tooled, lambda _: valgrind())
    else:
        say("valgrind is left out: it is a package of that name")
    for each in SANITIZERS:
        wrong += wrong_ends(asked.tooled, partial(sanitized, each), preload(each))
    return ended("exits", wrong, ends=asked.ends, tooled=asked.tooled, tools=tools)


if __name__ == "__main__":
    raise SystemExit(main())
