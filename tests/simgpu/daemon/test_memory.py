"""Memory of a card: allocated and freed to the byte, and freed when its process ends, however it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import User, totals, until, used
from simgpu.daemon.wire import BLOCK, MIB, Ask, Caller, Result

CAPACITY = 900 * MIB
CONTEXT_BYTES = 64 * MIB


def test_a_shared_descriptor_is_kept_once_and_handed_to_those_who_open(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        piece = caller.call(Ask.TAKE, kind=BLOCK, size=1).id
        fds = [os.memfd_create("first"), os.memfd_create("second")]
        tokens = [caller.call(Ask.SHARE, id=piece, fds=[fd]).token for fd in fds]
        assert tokens[0] == tokens[1]
        opened = caller.call(Ask.OPEN, token=tokens[0])
        assert [str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in opened.fds] == ["/memfd:first (deleted)"]
        assert totals(node)["kept"] == 1
        for fd in (*fds, *opened.fds):
            os.close(fd)
        for _ in range(2):
            caller.call(Ask.GIVE, id=piece)
        assert totals(node)["kept"] == 0


@pytest.mark.slow
def test_exec_ends_contexts_and_returns_memory(node: SimulatedNode) -> None:
    with User(node.root) as user:
        user.ask(Ask.ATTACH)
        user.take(MIB)
        assert user.do("exec") == "new"
        until(lambda: used(node) == 0)
        assert user.pid > 0


def test_a_second_connection_that_comes_and_goes_costs_a_process_nothing(node: SimulatedNode) -> None:
    """Even if it has unmapped the timelines, and so looks like another program."""
    with Caller(node.root) as caller:
        caller.call(Ask.ATTACH)
        caller.timelines.close()
        with Caller(node.root) as second:
            assert second.call(Ask.USED).size == CONTEXT_BYTES
            second.timelines.close()
            with Caller(node.root) as third:
                assert third.call(Ask.USED).size == CONTEXT_BYTES
        until(lambda: totals(node)["clients"] == 1)
        assert caller.call(Ask.USED).size == CONTEXT_BYTES


@pytest.mark.slow
def test_a_fork_does_not_keep_the_memory_of_its_dead_parent(node: SimulatedNode) -> None:
    """The child has the connection and the files, and would hide the hang-up."""
    with User(node.root) as user:
        user.ask(Ask.ATTACH)
        child = int(user.do("fork"))
        user.kill()
        until(lambda: used(node) == 0)
        os.kill(child, signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_only_hung_up_keeps_what_it_has(node: SimulatedNode) -> None:
    with User(node.root) as user:
        user.ask(Ask.ATTACH)
        assert user.do("hang up") == "done"
        until(lambda: totals(node)["clients"] == 0)
        assert used(node) == CONTEXT_BYTES
        user.kill()
        until(lambda: totals(node)["processes"] == 0)
        assert used(node) == 0


def test_ten_thousand_pieces_come_and_go(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        for n in range(10_000):
            assert caller.call(Ask.TAKE, kind=BLOCK, size=n % 7 + 1).result == Result.OK
        assert totals(node)["pieces"] == 10_000
        assert used(node) == sum(n % 7 + 1 for n in range(10_000))
        first = caller.call(Ask.TAKE, kind=BLOCK, size=1).id
        caller.call(Ask.GIVE, id=first)
        assert caller.call(Ask.TAKE, kind=BLOCK, size=1).id != first, "a number that was given back means nothing again"
    until(lambda: totals(node)["pieces"] == 0)
    assert used(node) == 0
