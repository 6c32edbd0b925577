"""A thousand metered programs end while the card has work of them, without a wait, by each way to end.

    make soak-exits             # 1,000, and 60 under each tool; some ten minutes
    tools/named soak exits --ends 60 --tooled 6

They have half of a simulated card's time, and another container floods it. A call of the driver after it has taken
itself down ends the program, so that nothing of ours may make one. Then fewer do so under valgrind, and with the
library and themselves built with each sanitizer. It prints what it found and, as its last line, one JSON object. Exit
status: 0 when all is well, 3 when one ended badly or not at all, or a tool had something to report.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from bench.isolation.exits import WAYS, Tool, ends, plain, wrong_end
from bench.isolation.place import Container
from bench.isolation.programs import programs
from partage_simgpu.build import READY_MADE
from support.sanitized import OPTIONS, SANITIZERS, VALGRIND, preload, runtimes, small_driver
from support.sanitized import programs as sanitized_programs

EXIT_WRONG: Final = 3
AT_ONCE: Final = 4


def valgrind() -> Tool:
    return Tool("valgrind", programs() / "exits", before=VALGRIND)


def sanitized(sanitizer: str, container: Container) -> Tool:
    program = sanitized_programs(sanitizer) / "exits"
    first = f"{runtimes(sanitizer)}:{container.preloaded}"
    return Tool(sanitizer, program, environment={**OPTIONS, "LD_PRELOAD": first})


def wrong_ends(count: int, tool: Callable[[Container], Tool], objects: Path | None = None) -> list[str]:
    """So many, some at once."""
    with ends(objects) as container, ThreadPoolExecutor(AT_ONCE) as pool:
        chosen = tool(container)
        done = pool.map(lambda number: wrong_end(container, WAYS[number % len(WAYS)], chosen), range(count))
        wrong = [each for each in done if each is not None]
    sys.stdout.write("".join(f"{line}\n" for line in [*wrong, f"{chosen.name}: {count} ended, {len(wrong)} badly"]))
    sys.stdout.flush()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak exits", description="programs end while the card has work of them")
    parser.add_argument("--ends", type=int, default=1000, help="how many, by default 1000")
    parser.add_argument("--tooled", type=int, default=60, help="how many under each tool, by default 60")
    told = parser.parse_args()
    wrong = wrong_ends(told.ends, lambda _: plain())
    os.environ[READY_MADE] = str(small_driver())
    tools = [*SANITIZERS]
    if shutil.which("valgrind"):
        tools.append("valgrind")
        wrong += wrong_ends(told.tooled, lambda _: valgrind())
    else:
        sys.stderr.write("valgrind is left out: it is a package of that name\n")
    for each in SANITIZERS:
        wrong += wrong_ends(told.tooled, partial(sanitized, each), preload(each))
    found = {"soak": "exits", "ends": told.ends, "tooled": told.tooled, "tools": tools, "wrong": len(wrong)}
    sys.stdout.write(f"{json.dumps(found)}\n")
    return EXIT_WRONG if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
