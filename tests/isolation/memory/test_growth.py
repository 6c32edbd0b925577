"""Growth beside allocations is refused if it does not fit, and counts if it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isolation.memory.growing import CONTEXT_MIB, LIMIT, MODULE_MIB, a_place, filled, grow, held, program
from isolation.memory.stage import MIB, OUT_OF_MEMORY
from partage_isolation.library.objects import built
from support.isolated import Contained, Isolated
from support.steered import Steered

pytestmark = pytest.mark.slow
LOCALS_MIB = 40
"""Memory on the card per KiB of local memory beyond the first."""
NODE = 32 << 10


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    with a_place() as made:
        yield made


class Grower:
    def __init__(self, container: Contained, program: Steered) -> None:
        self.container, self.program = container, program
        self.ask, self.error = program.ask, program.error

    @property
    def held(self) -> int:
        return held(self.container, self.program.pid)

    @property
    def free(self) -> int:
        return int(self.ask("info()")[0])


@pytest.fixture
def one(place: Isolated) -> Iterator[Grower]:
    container = place.prepare(LIMIT)
    container.install(built())
    with program(container) as started:
        yield Grower(container, started)


def leave(one: Grower, left_mib: int) -> None:
    filled(one.program, left_mib)


def test_containers_that_grow_are_refused_and_never_stopped(place: Isolated) -> None:
    for seen in grow(place, seeds=range(3)):
        assert seen.wrong == []
        assert seen.refused


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
