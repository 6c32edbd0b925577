"""Memory of a card: taken and given back to the byte, and returned when its process ends, however it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import User, status, totals, until, used
from simgpu.daemon.wire import BLOCK, CONTEXT, MIB, MODULE, Ask, Caller, Result

CAPACITY = 900 * MIB
CONTEXT_BYTES = 64 * MIB


def test_a_process_takes_context_memory_once_however_often_it_attaches(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        first, second = caller.call(Ask.ATTACH), caller.call(Ask.ATTACH)
        assert (first.row, first.id) == (second.row, second.id)
        assert used(node) == CONTEXT_BYTES
        assert caller.call(Ask.DETACH).result == Result.OK
        assert used(node) == CONTEXT_BYTES
        assert caller.call(Ask.DETACH).result == Result.OK
        assert used(node) == 0
        assert caller.call(Ask.DETACH).result == Result.MISUSED


def test_a_card_is_full_at_the_last_byte_and_a_refusal_changes_nothing(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        most = caller.call(Ask.TAKE, kind=BLOCK, size=CAPACITY - 1)
        assert caller.call(Ask.TAKE, kind=BLOCK, size=2).result == Result.NO_MEMORY
        assert caller.call(Ask.TAKE, kind=BLOCK, size=2**64 - 1).result == Result.NO_MEMORY
        assert caller.call(Ask.ATTACH).result == Result.NO_MEMORY
        assert used(node) == CAPACITY - 1
        assert caller.call(Ask.TAKE, kind=BLOCK, size=1).result == Result.OK
        assert caller.call(Ask.GIVE, id=most.id).result == Result.OK
        assert used(node) == 1


def test_a_piece_returns_with_its_last_hold(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        piece = caller.call(Ask.TAKE, kind=BLOCK, size=MIB).id
        assert caller.call(Ask.HOLD, id=piece).result == Result.OK
        assert caller.call(Ask.GIVE, id=piece).result == Result.OK
        assert used(node) == MIB
        assert caller.call(Ask.GIVE, id=piece).result == Result.OK
        assert used(node) == 0
        assert caller.call(Ask.GIVE, id=piece).result == Result.UNKNOWN


def test_peaks_see_what_was_given_back_at_once(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        caller.call(Ask.ATTACH)
        caller.call(Ask.GIVE, id=caller.call(Ask.TAKE, kind=BLOCK, size=7).id)
        assert status(node).peak_bytes == CONTEXT_BYTES + 7
        assert status(node).processes[0].peak_bytes == CONTEXT_BYTES + 7
        node.control("peaks reset")
        assert status(node).peak_bytes == status(node).processes[0].peak_bytes == CONTEXT_BYTES


def test_a_process_is_charged_for_what_it_took_before_its_context_too(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        caller.call(Ask.TAKE, kind=BLOCK, size=5)
        caller.call(Ask.ATTACH)
        assert status(node).processes[0].bytes == caller.call(Ask.USED).size == CONTEXT_BYTES + 5


def test_what_makes_no_sense_is_refused(node: SimulatedNode) -> None:
    with Caller(node.root) as caller:
        context = caller.call(Ask.ATTACH).id
        assert caller.call(Ask.TAKE, kind=BLOCK).result == Result.MISUSED
        assert caller.call(Ask.TAKE, kind=CONTEXT, size=1).result == Result.MISUSED
        assert caller.call(Ask.TAKE, kind=MODULE + 1, size=1).result == Result.MISUSED
        assert caller.call(Ask.TAKE, card=1, kind=BLOCK, size=1).result == Result.UNKNOWN
        for ask in (Ask.GIVE, Ask.HOLD, Ask.SHARE):
            assert caller.call(ask, id=context).result == Result.MISUSED
        assert used(node) == CONTEXT_BYTES


@pytest.mark.slow
def test_a_killed_process_has_nothing_any_more(node: SimulatedNode) -> None:
    with User(node.root) as user:
        user.ask(Ask.ATTACH)
        user.take(3 * MIB)
        assert used(node) == CONTEXT_BYTES + 3 * MIB
        user.kill()
    until(lambda: used(node) == 0)
    assert totals(node) == {"cards": 1, "processes": 0, "clients": 0, "pieces": 0, "kept": 0}


@pytest.mark.slow
def test_a_stopped_process_keeps_what_it_has(node: SimulatedNode) -> None:
    with User(node.root) as user, User(node.root) as other:
        user.take(MIB)
        user.send(signal.SIGSTOP)
        other.take(5)
        assert used(node) == MIB + 5
        user.kill()
        until(lambda: used(node) == 5)


@pytest.mark.slow
def test_a_piece_outlives_its_taker_while_others_hold_it(node: SimulatedNode) -> None:
    with User(node.root) as taker, Caller(node.root) as holder:
        taker.ask(Ask.ATTACH)
        token = taker.ask(Ask.SHARE, id=taker.take(3 * MIB)).token
        opened = holder.call(Ask.OPEN, token=token)
        assert (opened.result, opened.size, opened.pid, opened.count) == (Result.OK, 3 * MIB, taker.pid, 0)
        taker.kill()
        until(lambda: used(node) == 3 * MIB)
        assert holder.call(Ask.USED).size == 0, "who opens it is not charged"
        assert holder.call(Ask.GIVE, id=opened.id).result == Result.OK
        assert used(node) == 0
        assert holder.call(Ask.OPEN, token=token).result == Result.UNKNOWN


@pytest.mark.slow
def test_who_gave_a_piece_away_and_opens_it_again_is_a_holder_like_any_other(node: SimulatedNode) -> None:
    with User(node.root) as other, Caller(node.root) as taker:
        piece = taker.call(Ask.TAKE, kind=BLOCK, size=MIB).id
        token = taker.call(Ask.SHARE, id=piece).token
        other.ask(Ask.OPEN, token=token)
        for _ in range(2):
            taker.call(Ask.GIVE, id=piece)
            assert taker.call(Ask.USED).size == 0
            assert taker.call(Ask.OPEN, token=token).id == piece
        assert used(node) == MIB


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
def test_only_holders_may_give_and_only_tokens_open(node: SimulatedNode) -> None:
    with User(node.root) as owner, Caller(node.root) as thief:
        piece = owner.take(MIB)
        for ask in (Ask.GIVE, Ask.HOLD, Ask.SHARE):
            assert thief.call(ask, id=piece).result == Result.UNKNOWN
        assert thief.call(Ask.OPEN, token=piece.to_bytes(8, "little") + bytes(8)).result == Result.UNKNOWN
        token = owner.ask(Ask.SHARE, id=piece).token
        forged = token[:-1] + bytes([token[-1] ^ 1])
        assert thief.call(Ask.OPEN, token=forged).result == Result.UNKNOWN
        assert thief.call(Ask.OPEN, token=token).result == Result.OK


@pytest.mark.slow
def test_exec_ends_contexts_and_returns_memory(node: SimulatedNode) -> None:
    with User(node.root) as user:
        user.ask(Ask.ATTACH)
        user.take(MIB)
        assert user.do("exec") == "new"
        until(lambda: used(node) == 0)
        assert user.pid > 0


def test_a_second_connection_that_comes_and_goes_costs_a_process_nothing(node: SimulatedNode) -> None:
    """Not even one that has unmapped the timelines, and so looks as if it were another program."""
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
    """The child has the connection and the files, and would keep a hang-up from being seen."""
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
