"""Programs near their limit that grow without an allocating call: local memory, code and executables of graphs.

    with a_place() as place:
        seen = grow(place, seeds=range(100))

Each growth is done or refused, the container stays within its limit except for the code of one module, `cuMemGetInfo`
never shows more than there is, and the audit finds nothing: a container is not stopped for something that could be
refused.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from isolation.memory.stage import MIB, OUT_OF_MEMORY
from partage_isolation.library.objects import built
from simgpu.memory.programs import CLIENT
from support.isolated import Contained, Isolated, isolated
from support.simgpu import card
from support.steered import Steered

LIMIT: Final = 1024 * MIB
CONTEXT_MIB: Final = 64
MODULE_MIB: Final = 24
_CARD_MIB: Final = 64 << 10
_NEAR_MIB: Final = 128
_STEPS: Final = 12
_AT_ONCE: Final = 10
AUDITED_S: Final = 2.0
"""Long enough for several full audits, so that any violation is found; nothing is judged by it."""


@dataclass
class Seen:
    done: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    wrong: list[str] = field(default_factory=list[str])
    most_over: int = 0
    """Bytes by which a container exceeded its limit."""


@contextmanager
def a_place() -> Generator[Isolated]:
    """A card on which 1 KiB of local memory in each thread is 40 MiB."""
    large = card("t4", memory_mib=_CARD_MIB, reserved_mib=0, context_mib=CONTEXT_MIB, module_mib=MODULE_MIB)
    with isolated(cards=(large,)) as made:
        yield made


@contextmanager
def program(container: Contained) -> Generator[Steered]:
    """A program with a context on the card, a stream, and a loaded kernel."""
    env = {**container.place.node.environment, "LD_PRELOAD": container.preload}
    with Steered([sys.executable, CLIENT], env=env, refusals="cuda") as started:
        for line in ("start()", "s = stream()", "k = kernel('sim_1us')", "run(k, s)", "kept = []"):
            started.ask(line)
        yield started


def held(container: Contained, pid: int) -> int:
    """The card's figure for a process, with its context."""
    return next((one.bytes for one in container.place.node.status()[0].processes if one.pid == pid), 0)


def filled(one: Steered, left_mib: int) -> None:
    """Allocate all but this much."""
    free, _ = one.ask("info()")
    one.ask(f"a = alloc({max(free - left_mib * MIB, MIB)})")


def grow(place: Isolated, seeds: Iterable[int]) -> Iterator[Seen]:
    """Results so far, after every few seeds."""
    seen = Seen()
    for batch in _batches(seeds):
        with contextlib.ExitStack() as stack:
            for seed in batch:
                _one(place, seed, seen, stack)
            time.sleep(AUDITED_S)
            seen.wrong += [f"seeds {batch[0]} to {batch[-1]}: {each}" for each in place.told().findings]
        yield seen


def _batches(seeds: Iterable[int]) -> Iterator[Sequence[int]]:
    rest = list(seeds)
    while rest:
        yield rest[:_AT_ONCE]
        rest = rest[_AT_ONCE:]


def _one(place: Isolated, seed: int, seen: Seen, stack: contextlib.ExitStack) -> None:
    """The program lives until the stack ends."""
    random_ = random.Random(seed)  # noqa: S311  nothing secret
    container = place.prepare(LIMIT)
    container.install(built())
    one = stack.enter_context(program(container))
    filled(one, random_.randrange(_NEAR_MIB))
    for step in range(_STEPS):
        kind = random_.choice(("locals", "locals", "module", "module", "graph", "graph", "destroy", "alloc"))
        number = one.error(_line(kind, random_))
        counted = seen.done if number == 0 else seen.refused
        counted[kind] = counted.get(kind, 0) + 1
        about = f"seed {seed}, step {step}, {kind}"
        if number not in (0, OUT_OF_MEMORY):
            seen.wrong.append(f"{about}: error {number}")
        _look(container, one, about, seen)


def _line(kind: str, random_: random.Random) -> str:
    match kind:
        case "locals":
            return f"launch('sim_1us_locals_{random_.randrange(1024, 9216, 16)}', s)"
        case "module":
            return "launch('sim_1us', s)"
        case "graph":
            return f"kept.append(repeated(k, {random_.randrange(1, 1500)}, s))"
        case "destroy":
            return "kept and call('cuGraphExecDestroy', kept.pop())"
        case _:
            return f"alloc({random_.randrange(1, 64 * MIB)})"


def _look(container: Contained, one: Steered, about: str, seen: Seen) -> None:
    free, _ = one.ask("info()")
    has = held(container, one.pid)
    seen.most_over = max(seen.most_over, has - LIMIT)
    if has > LIMIT + MODULE_MIB * MIB:
        seen.wrong.append(f"{about}: {(has - LIMIT) / MIB:.1f} MiB beyond its limit")
    if free > max(LIMIT - has, 0):
        seen.wrong.append(f"{about}: {free / MIB:.1f} MiB are shown free, {max(LIMIT - has, 0) / MIB:.1f} MiB are left")
