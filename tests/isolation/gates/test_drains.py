"""DRAINED is sent only after all launches are done, in streams of every kind, even destroyed ones."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

import pytest

from isolation.gates.stage import A_WHILE_S, Place, Program, granted
from partage_isolation.wire.packets import What
from support.steered import eventually

pytestmark = pytest.mark.slow

LONG_MS = 400
STREAMS = ("0", "LEGACY", "PER_THREAD", "stream()", "stream(0)")


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_is_drained_when_its_work_is_done_and_not_before(one: Program, stream: str) -> None:
    broker = granted(one)
    one.ask(f"s = {stream}")
    one.ask(f"launch(s, {2 * LONG_MS})")
    epoch = broker.close()
    one.ask(f"time.sleep({A_WHILE_S})")
    said = broker.heard_of(What.DRAINED, epoch)
    assert not (said and one.ask("is_busy(s)"))  # in this order: work that is busy now was busy then
    broker.wait_for(What.DRAINED, epoch)
    assert not one.ask("is_busy(s)")


def test_leases_that_were_over_before_anybody_saw_them_are_answered(one: Program) -> None:
    broker = granted(one)
    broker.gives_hints = False
    for _ in range(3):
        broker.timeslice(seconds=0)
    broker.gives_hints = True
    broker.wait_for(What.DRAINED, broker.timeslice(seconds=0))


def test_a_lease_that_passed_while_the_process_stood_still_is_answered(one: Program) -> None:
    broker = granted(one)
    os.kill(one.pid, signal.SIGSTOP)
    epoch = broker.timeslice(seconds=0.05)
    time.sleep(0.2)
    os.kill(one.pid, signal.SIGCONT)
    broker.wait_for(What.DRAINED, epoch)


def test_streams_of_other_threads_are_drained_too(one: Program) -> None:
    broker = granted(one)
    one.ask("went = threading.Event()")
    one.ask("t = in_thread(lambda: (launch(PER_THREAD, 600), went.set(), time.sleep(2)))")
    one.ask("went.wait()")
    epoch = broker.close()
    said = broker.wait_for(What.DRAINED, epoch)
    assert one.ask("time.monotonic_ns()") >= said.timeslice.at
    one.ask("t.join()")


def test_launches_that_nobody_counted_are_drained(one: Program) -> None:
    broker = one.place.broker
    one.say("launch()")
    broker.wait_for(What.WANT, 0)
    broker.free()
    one.answer()
    one.ask("s, b = stream(), stream(0)")
    one.ask(f"launch(s, {LONG_MS}); launch(b, {LONG_MS}); launch(PER_THREAD, {LONG_MS})")
    epoch = broker.close()
    broker.wait_for(What.DRAINED, epoch)
    assert one.ask("[is_busy(x) for x in (s, b, PER_THREAD)]") == [False] * 3


def test_a_stream_that_was_destroyed_is_drained_all_the_same(one: Program) -> None:
    broker = granted(one)
    one.ask("s = stream()")
    one.ask("launch(s, 1000)")
    one.ask("e = told('cuEventCreate', 0)")
    one.ask("call('cuEventRecord', e, s); call('cuStreamDestroy_v2', s)")
    epoch = broker.close()
    broker.wait_for(What.DRAINED, epoch)
    one.ask("call('cuEventQuery', e)")


def test_a_context_that_was_destroyed_holds_nobody_up(one: Program) -> None:
    broker = granted(one)
    one.ask("c = context()")
    one.ask("launch(0, 5); launch(stream(), 5)")
    one.ask("call('cuCtxDestroy_v2', c)")
    one.ask("use(0)")
    broker.wait_for(What.DRAINED, broker.close())
    broker.sole()
    one.ask("launch()")


def test_a_primary_context_that_was_reset_holds_nobody_up(one: Program) -> None:
    broker = granted(one)
    one.ask("launch(stream(), 5)")
    one.ask("call('cuDevicePrimaryCtxReset_v2', 0)")
    broker.wait_for(What.DRAINED, broker.close())
    one.ask("_contexts[0] = told('cuDevicePrimaryCtxRetain', 0)")
    one.ask("_kernels.clear(); use(0)")
    broker.sole()
    one.ask("launch(); launch(stream())")
    broker.wait_for(What.DRAINED, broker.close())


def test_streams_and_contexts_that_come_and_go_while_leases_do(one: Program) -> None:
    broker = one.place.broker
    one.ask("ts = [in_thread(each) for each in (churn_streams, churn_contexts, churn_streams)]")
    for _ in range(30):
        broker.wait_for(What.DRAINED, broker.timeslice(seconds=0.01))
    broker.sole()
    one.ask("join_all()")


def test_a_context_that_became_current_past_the_library_is_drained_too(one: Program) -> None:
    """It is noticed at the end of a batch, which has 256 launches at most."""
    broker = granted(one)
    one.ask("launches(2); past('cuCtxCreate_v2', 0, 0)")
    one.ask(f"kernel(); launches(600, 0, 0.001); launch(0, {LONG_MS})")
    broker.wait_for(What.DRAINED, broker.close())
    assert not one.ask("is_busy(0)")


def test_a_green_context_that_is_destroyed_delays_no_end_of_a_lease(one: Program) -> None:
    broker = granted(one)
    one.ask("g = told('cuGreenCtxCreate', 1, 0, 1)")
    one.ask("call('cuCtxPushCurrent_v2', told('cuCtxFromGreenCtx', g))")
    one.ask("s = told('cuGreenCtxStreamCreate', g, 1, 0)")
    one.ask("launch(s, 5); launch(0, 5)")
    one.ask("call('cuGreenCtxDestroy', g); call('cuCtxPopCurrent_v2', None)")
    broker.wait_for(What.DRAINED, broker.close())
    broker.sole()
    one.ask("launch()")


BLOCKING: Final = {
    "the first of a thread": "",
    "one of a batch": "launches(5, s, 0.01), time.sleep(0.1), launch(o, 0.01),",
}
"""Earlier actions of the thread.

During the pause everything is found done, and the other stream's launch opens the gate again.
"""


@pytest.mark.parametrize("which", list(BLOCKING))
def test_a_launch_that_has_not_come_back_is_not_drained(place: Place, which: str) -> None:
    with place.program(more={"CUDA_LAUNCH_BLOCKING": "1"}) as one:
        broker = granted(one)
        one.ask("s, o = stream(), stream(); launches(300, s, 0.01); launches(5, o, 0.01)")
        one.ask("goes = threading.Event()")
        one.ask(f"t = in_thread(lambda: ({BLOCKING[which]} goes.set(), launch(s, {3 * LONG_MS}))) and None")
        one.ask("goes.wait()")
        eventually(lambda: one.ask("is_busy(s)"), "the launch is under way")
        broker.wait_for(What.DRAINED, broker.close())
        assert not one.ask("is_busy(s)")
        one.ask("join_all()")


def test_every_member_says_for_itself(place: Place) -> None:
    with place.program() as one, place.program() as other:
        broker = granted(one)
        other.ask("launch()")
        one.ask(f"launch(stream(), {LONG_MS})")
        epoch = broker.close()
        broker.wait_for(What.DRAINED, epoch, pid=other.pid)
        broker.wait_for(What.DRAINED, epoch, pid=one.pid)
