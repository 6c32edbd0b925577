"""A process is checkpointed off its card and restored by another one, as by a real driver."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import (
    INVALID_VALUE,
    MIB,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    Program,
    program,
    used,
)
from support.steered import eventually

pytestmark = pytest.mark.slow

CONTEXT = 64 * MIB
ILLEGAL_STATE, NOT_READY = 401, 600
RUNS, LOCKED, AWAY = range(3)


class Caller:
    """Another process of the node, without a context."""

    def __init__(self, program: Program) -> None:
        self.program = program
        program.ask("call('cuInit', 0)")

    def do(self, step: str, pid: int, patience_ms: int = 60_000) -> int:
        wishes = f"words({patience_ms}, width=4) + bytes(60)"
        return self.program.error(f"call('cuCheckpointProcess{step}', {pid}, {wishes})")

    def state(self, pid: int) -> int:
        return int(self.program.ask(f"state_of({pid})"))


@pytest.fixture
def caller(node: SimulatedNode) -> Iterator[Caller]:
    with program(node, device=None) as started:
        yield Caller(started)


def listed(node: SimulatedNode) -> dict[int, int]:
    return {each.pid: each.bytes for each in node.status()[0].processes}


def test_what_is_away_is_not_listed_and_its_room_is_others(node: SimulatedNode, one: Program, caller: Caller) -> None:
    one.ask("x = alloc(700 * MIB)")
    assert (caller.do("Lock", one.pid), caller.do("Checkpoint", one.pid)) == (0, 0)
    with program(node) as other:
        other.ask("y = alloc(700 * MIB)")
        assert caller.do("Restore", one.pid) == OUT_OF_MEMORY
        assert caller.state(one.pid) == AWAY
    eventually(lambda: not used(node), "the other's memory is gone")
    assert (caller.do("Restore", one.pid), caller.do("Unlock", one.pid)) == (0, 0)
    assert used(node) == CONTEXT + 700 * MIB


def test_it_is_locked_once_its_work_is_done_and_stays_free_where_nobody_waits_for_that(
    one: Program, caller: Caller
) -> None:
    one.ask("launch('sim_400ms')")
    assert caller.do("Lock", one.pid, patience_ms=20) == NOT_READY
    assert caller.state(one.pid) == RUNS
    one.ask("info() and None")
    assert caller.do("Lock", one.pid) == 0
    assert caller.state(one.pid) == LOCKED


def test_steps_out_of_order_change_nothing(one: Program, caller: Caller) -> None:
    assert [caller.do(step, one.pid) for step in ("Checkpoint", "Restore", "Unlock")] == [ILLEGAL_STATE] * 3
    assert caller.do("Lock", one.pid) == 0
    assert [caller.do(step, one.pid) for step in ("Lock", "Restore")] == [ILLEGAL_STATE] * 2
    assert caller.do("Checkpoint", one.pid) == 0
    assert [caller.do(step, one.pid) for step in ("Lock", "Checkpoint", "Unlock")] == [ILLEGAL_STATE] * 3
    assert caller.state(one.pid) == AWAY


def test_memory_that_another_process_has_open_is_refused(node: SimulatedNode, one: Program, caller: Caller) -> None:
    handle = one.ask("ipc_handle(alloc(MIB))")
    with program(node) as other:
        other.ask(f"x = ipc_open('{handle}')")
        for each in (one, other):
            assert caller.do("Lock", each.pid) == 0
            assert caller.do("Checkpoint", each.pid) == NOT_SUPPORTED
            assert caller.do("Unlock", each.pid) == 0


@pytest.mark.parametrize("steps", [("Lock",), ("Lock", "Checkpoint"), ("Lock", "Checkpoint", "Restore")])
def test_killed_at_any_step_it_leaves_nothing(
    node: SimulatedNode, one: Program, caller: Caller, steps: tuple[str, ...]
) -> None:
    one.ask("x = alloc(100 * MIB)")
    assert [caller.do(step, one.pid) for step in steps] == [0] * len(steps)
    one.send(signal.SIGKILL)
    eventually(lambda: not listed(node) and not used(node), "nothing is left of it")
    with program(node) as next_one:
        next_one.ask("y = alloc(900 * MIB)")


def test_of_a_process_without_a_context_there_is_none(node: SimulatedNode, caller: Caller) -> None:
    with program(node, device=None) as idle:
        idle.ask("call('cuInit', 0)")
        assert caller.do("Lock", idle.pid) == NOT_INITIALIZED
    assert caller.program.error(f"call('cuCheckpointProcessGetState', {idle.pid}, None)") == INVALID_VALUE
