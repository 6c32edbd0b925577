"""Growth beside allocations is refused if it does not fit, and counts if it does."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from isolation.memory.stage import MIB, OUT_OF_MEMORY
from isolation.migration.stage import program
from partage_isolation.library.objects import built
from support.isolated import Contained, Isolated, isolated
from support.simgpu import card
from support.steered import Steered

pytestmark = pytest.mark.slow
LIMIT: Final = 1024 * MIB
CONTEXT_MIB: Final = 64
MODULE_MIB: Final = 24
LOCALS_MIB: Final = 40
"""Memory on the card per KiB of local memory beyond the first."""
NODE: Final = 32 << 10
_CARD_MIB: Final = 64 << 10


@contextmanager
def grower(container: Contained) -> Generator[Steered]:
    """A program with a stream and a loaded kernel."""
    with program(container) as started:
        for line in ("s = stream()", "k = kernel('sim_1us')", "run(k, s)", "kept = []"):
            started.ask(line)
        yield started


def filled(one: Steered, left_mib: int) -> None:
    """Allocate all but this much."""
    free, _ = one.ask("info()")
    one.ask(f"a = alloc({max(free - left_mib * MIB, MIB)})")


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    """A card on which 1 KiB of local memory in each thread is 40 MiB."""
    large = card("t4", memory_mib=_CARD_MIB, reserved_mib=0, context_mib=CONTEXT_MIB, module_mib=MODULE_MIB)
    with isolated(cards=(large,)) as made:
        yield made


class Grower:
    def __init__(self, container: Contained, program: Steered) -> None:
        self.container, self.program = container, program
        self.ask, self.error = program.ask, program.error

    @property
    def held(self) -> int:
        return self.container.place.held(self.program.pid)

    @property
    def free(self) -> int:
        return int(self.ask("info()")[0])


@pytest.fixture
def one(place: Isolated) -> Iterator[Grower]:
    container = place.prepare(LIMIT)
    container.install(built())
    with grower(container) as started:
        yield Grower(container, started)


def leave(one: Grower, left_mib: int) -> None:
    filled(one.program, left_mib)


def test_a_kernel_whose_local_memory_does_not_fit_is_not_launched(one: Grower) -> None:
    one.ask("f = kernel('sim_1us_locals_3072')")
    leave(one, 2 * LOCALS_MIB - 1)
    before = one.held
    assert one.error("run(f, s)") == OUT_OF_MEMORY
    assert one.error("run(f)") == OUT_OF_MEMORY
    assert one.held == before
    one.ask("run(k, s)")
    one.ask("free(a)")
    one.ask("run(f, s)")
    assert one.held == (CONTEXT_MIB + 2 * MODULE_MIB + 2 * LOCALS_MIB) * MIB


def test_a_kernel_is_known_by_its_handle_in_contexts_too(one: Grower) -> None:
    one.ask("l = told('cuLibraryLoadData', b'anything', None, None, 0, None, None, 0)")
    one.ask("g = told('cuLibraryGetKernel', l, b'sim_1us_locals_3072')")
    one.ask("f = told('cuKernelGetFunction', g)")
    leave(one, 2 * LOCALS_MIB - 1)
    assert one.error("run(f, s)") == OUT_OF_MEMORY
    one.ask("free(a)")
    one.ask("run(f, s)")
    assert one.held == (CONTEXT_MIB + 2 * MODULE_MIB + 2 * LOCALS_MIB) * MIB


def test_local_memory_is_of_the_largest_kernel_and_goes_with_the_context(one: Grower) -> None:
    for size in (4096, 2048, 4096, 1024):
        one.ask(f"run(kernel('sim_1us_locals_{size}'), s)")
    assert one.held == (CONTEXT_MIB + 5 * MODULE_MIB + 3 * LOCALS_MIB) * MIB
    assert one.free == LIMIT - one.held
    one.ask("reset()")
    one.ask("start()")
    assert one.free >= LIMIT - one.held - MIB
    one.ask("run(kernel('sim_1us_locals_2048'))")
    assert one.free == LIMIT - one.held


def test_a_larger_stack_is_asked_for(one: Grower) -> None:
    leave(one, 3 * LOCALS_MIB)
    assert one.error("call('cuCtxSetLimit', 0, 8192)") == OUT_OF_MEMORY
    before = one.held
    one.ask("call('cuCtxSetLimit', 0, 3072)")
    assert one.held == before + 2 * LOCALS_MIB * MIB
    assert one.free <= LOCALS_MIB * MIB


def test_executables_of_graphs_count_until_they_are_destroyed(one: Grower) -> None:
    before = one.free
    one.ask("g = repeated(k, 1000, s)")
    assert one.free == before - 1000 * NODE
    one.ask("call('cuGraphExecDestroy', g)")
    assert one.free == before
    leave(one, 16)
    assert one.error("repeated(k, 1000, s)") == OUT_OF_MEMORY
    one.ask("g = repeated(k, 500, s)")


def test_a_graph_whose_kernels_need_local_memory_is_refused_when_it_is_instantiated(one: Grower) -> None:
    one.ask("f = kernel('sim_1us_locals_3072')")
    leave(one, 2 * LOCALS_MIB)
    assert one.error("repeated(f, 1, s)") == OUT_OF_MEMORY
    one.ask("free(a)")
    before = one.free
    one.ask("g = repeated(f, 1, s)")
    assert one.free == before - 2 * LOCALS_MIB * MIB - NODE
    one.ask("call('cuGraphLaunch', g, s)")


def test_code_that_was_loaded_lowers_what_is_free_and_no_more_is_loaded_where_nothing_is(one: Grower) -> None:
    before = one.free
    one.ask("launch('sim_1us', s)")
    assert one.free == before - MODULE_MIB * MIB
    leave(one, 10)
    assert one.error("launch('sim_1us', s)") == 0, "how much it takes nobody says"
    assert one.held == LIMIT + (MODULE_MIB - 10) * MIB
    for line in ("launch('sim_1us', s)", "repeated(k, 1, s)", "launch('sim_1us_locals_2048', s)", "alloc(1)"):
        assert one.error(line) == OUT_OF_MEMORY, line
    assert one.free == 0
    one.ask("run(k, s)")
    one.ask("free(a)")
    one.ask("launch('sim_1us', s)")


def test_code_is_loaded_while_the_broker_is_away(one: Grower) -> None:
    broker = one.container.place.broker
    broker.kill()
    try:
        one.ask("launch('sim_1us', s)")
    finally:
        broker.start()


def test_a_function_that_is_found_and_never_launched_takes_nothing(one: Grower) -> None:
    before = one.free
    one.ask("m = told('cuModuleLoadData', b'anything')")
    one.ask("f = told('cuModuleGetFunction', m, b'sim_1us_locals_8192')")
    one.ask("l = told('cuLibraryLoadData', b'anything', None, None, 0, None, None, 0)")
    one.ask("g = told('cuLibraryGetKernel', l, b'sim_1us_locals_8192')")
    one.ask("run(k, s)")
    assert one.free == before
    one.ask("call('cuModuleUnload', m)")
    one.ask("run(g, s)")
    assert one.free == before - (7 * LOCALS_MIB + MODULE_MIB) * MIB


# ---- Any growth near the limit ---------------------------------------------------------------------------------------


SEEDS: Final = int(os.environ.get("TEST_SEEDS", "10"))
"""`make soak-rounds` tries more."""
NEAR_MIB: Final = 128
STEPS: Final = 12
AT_ONCE: Final = 10
AUDITED_S: Final = 2.0
"""Long enough for several full audits, so that any violation is found; nothing is judged by it."""


@dataclass
class Seen:
    done: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    wrong: list[str] = field(default_factory=list[str])


def grow(place: Isolated, seeds: Sequence[int]) -> Seen:
    seen = Seen()
    for batch in (seeds[first : first + AT_ONCE] for first in range(0, len(seeds), AT_ONCE)):
        with contextlib.ExitStack() as stack:
            for seed in batch:
                _one(place, seed, seen, stack)
            time.sleep(AUDITED_S)
            seen.wrong += [f"seeds {batch[0]} to {batch[-1]}: {each}" for each in place.told().findings]
    return seen


def _one(place: Isolated, seed: int, seen: Seen, stack: contextlib.ExitStack) -> None:
    """The program lives until the stack ends."""
    random_ = random.Random(seed)  # noqa: S311  nothing secret
    container = place.prepare(LIMIT)
    container.install(built())
    one = stack.enter_context(grower(container))
    filled(one, random_.randrange(NEAR_MIB))
    for step in range(STEPS):
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
    has = container.place.held(one.pid)
    if has > LIMIT + MODULE_MIB * MIB:
        seen.wrong.append(f"{about}: {(has - LIMIT) / MIB:.1f} MiB beyond its limit")
    if free > max(LIMIT - has, 0):
        seen.wrong.append(f"{about}: {free / MIB:.1f} MiB are shown free, {max(LIMIT - has, 0) / MIB:.1f} MiB are left")


def test_containers_that_grow_are_refused_and_never_stopped(place: Isolated) -> None:
    """They stay within their limit but for the code of one module, and are never shown more than there is."""
    seen = grow(place, range(SEEDS))
    assert seen.wrong == []
    assert {"locals", "module", "graph"} <= seen.done.keys() & seen.refused.keys()
