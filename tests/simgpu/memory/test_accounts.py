"""Whatever programs do and however they die, every byte of the card is accounted for.

The model knows sizes and addresses only: small memory costs the 2 MiB blocks that contain its addresses.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import (
    BLOCK,
    GRAPH_RESERVED,
    KIB,
    MIB,
    OUT_OF_MEMORY,
    RESERVED,
    Program,
    program,
    rounded,
    used,
)
from support.simgpu import card, simulated_node
from support.steered import Said, eventually

pytestmark = pytest.mark.slow


def chance(seed: float) -> random.Random:
    """The same sequence for the same seed."""
    return random.Random(seed)  # noqa: S311 - it makes a story, no secrets


def uses(node: SimulatedNode, size: int) -> bool:
    """Whether this much of the first card is used."""
    return used(node) == size


class Model:
    """A program, and the expected cost of its memory."""

    def __init__(self, one: Program, chosen: random.Random) -> None:
        self._one, self._chosen = one, chosen
        self._blocks: dict[int, int] = {}
        self._pooled: list[int] = []
        self._others: list[tuple[str, int]] = []

    def cost(self) -> int:
        """Bytes beyond the context; pools and graphs by their own figures."""
        small = {address // BLOCK for address, size in self._blocks.items() if size <= MIB}
        large = sum(rounded(size, BLOCK) for size in self._blocks.values() if size > MIB)
        kept = self._one.ask(f"pool_get(pool_of(), {RESERVED}) + graph_memory({GRAPH_RESERVED})")
        return len(small) * BLOCK + large + sum(size for _, size in self._others) + int(kept)

    def step(self) -> None:
        makers: list[Callable[[], None]] = [self._alloc, self._alloc, self._pool, self._array, self._vmm, self._managed]
        makers.append(self._graph)
        enders: list[Callable[[], None]] = [self._free, self._free, self._free_pooled, self._end_other]
        try:
            self._chosen.choice(makers if self._chosen.random() < 0.55 else enders)()
        except Said as said:
            if said.number != OUT_OF_MEMORY:
                raise

    def end(self) -> None:
        while self._blocks:
            self._free()
        while self._pooled:
            self._free_pooled()
        while self._others:
            self._end_other()
        self._one.ask("synchronize()")
        self._one.ask('call("cuDeviceGraphMemTrim", 0)')
        self._one.ask('call("cuMemPoolTrimTo", pool_of(), 0)')

    def _size(self) -> int:
        return self._chosen.choice((1, 700, 512 * KIB, MIB, MIB + 1, 3 * MIB, 20 * MIB)) + self._chosen.randrange(5000)

    def _alloc(self) -> None:
        size = self._size()
        self._blocks[self._one.ask(f"alloc({size})")] = size

    def _pool(self) -> None:
        self._pooled.append(self._one.ask(f"alloc_async({self._size()})"))

    def _array(self) -> None:
        width, height = self._chosen.randint(1, 2000), self._chosen.randint(1, 500)
        handle = self._one.ask(f"array({width}, {height})")
        self._others.append((f'call("cuArrayDestroy", {handle})', rounded(width * height, 64 * KIB)))

    def _vmm(self) -> None:
        size = self._chosen.randint(1, 4) * BLOCK
        handle = self._one.ask(f"create({size})")
        self._others.append((f"release({handle})", size))

    def _managed(self) -> None:
        size = self._size()
        address = self._one.ask(f"managed({size})")
        self._others.append((f"free({address})", rounded(size, BLOCK)))

    def _graph(self) -> None:
        size = self._size()
        self._one.ask("one = stream()")
        self._one.ask(f"graph, _ = captured(one, lambda: free_async(alloc_async({size}, one), one))")
        self._one.ask('call("cuGraphLaunch", graph, one)')

    def _free(self) -> None:
        if self._blocks:
            address = self._chosen.choice(list(self._blocks))
            del self._blocks[address]
            self._one.ask(f"free({address})")

    def _free_pooled(self) -> None:
        if self._pooled:
            self._one.ask(f"free_async({self._pooled.pop(self._chosen.randrange(len(self._pooled)))})")

    def _end_other(self) -> None:
        if self._others:
            self._one.ask(self._others.pop(self._chosen.randrange(len(self._others)))[0])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_every_byte_is_accounted_for_after_every_step(node: SimulatedNode, seed: int) -> None:
    with program(node) as one:
        context = used(node)
        model = Model(one, chance(seed))
        for _ in range(60):
            model.step()
            assert used(node) - context == model.cost()
        model.end()
        assert used(node) == context
    eventually(lambda: used(node) == 0, "the program's context is gone")


def test_programs_that_are_killed_and_stopped_leave_nothing(node: SimulatedNode) -> None:
    chosen = chance(7)
    for _ in range(3):
        with ExitStack() as stack:
            programs = [stack.enter_context(program(node)) for _ in range(5)]
            models = [Model(one, chance(chosen.random())) for one in programs]
            for _ in range(40):
                chosen.choice(models).step()
            programs[4].send(signal.SIGSTOP)
            for one in programs[:2]:
                one.kill()
            for _ in range(20):
                chosen.choice(models[2:4]).step()
            programs[4].send(signal.SIGCONT)
            own = sum(64 * MIB + model.cost() for model in models[2:])
            eventually(partial(uses, node, own), "only the living have memory")
            for one in programs[2:]:
                one.kill()
        eventually(lambda: used(node) == 0, "nothing is left")


def test_a_program_that_dies_in_the_middle_of_sharing_leaves_nothing(node: SimulatedNode) -> None:
    for _ in range(5):
        with program(node) as one, program(node) as two:
            handles = [one.ask(f"ipc_handle(alloc({size}))") for size in (100, 3 * MIB, 20 * MIB)]
            for handle in handles:
                two.ask(f"ipc_open('{handle}')")
            one.kill()
            eventually(lambda: used(node) == 64 * MIB + 2 * BLOCK + 20 * MIB + BLOCK, "what is shared stays")
            two.kill()
        eventually(lambda: used(node) == 0, "nothing is left")


def test_an_instance_of_a_card_has_memory_of_its_own(tmp_path: Path) -> None:
    divided = card("h100", mig=("1g.10gb", "1g.10gb"), context_mib=64, graph_node_kib=0)
    with simulated_node(tmp_path, cards=(divided,)) as node, program(node) as one:
        index = next(number for number, status in node.status().items() if status.processes)
        total = node.status()[index].total_bytes
        assert one.ask("info()") == [total - used(node, index), total]
        chosen = Model(one, chance(1))
        context = used(node, index)
        for _ in range(30):
            chosen.step()
            assert used(node, index) - context == chosen.cost()
        assert one.error(f"alloc({total})") == OUT_OF_MEMORY
