"""Captures are unaffected: captured calls do not wait at the gate, and our calls are neither captured nor break it."""

from __future__ import annotations

from typing import Final

import pytest

from isolation.gates.stage import A_WHILE_S, Program, granted
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow

MODES = (0, 1, 2)  # global, thread-local, relaxed


def nodes(one: Program, stream: str = "s") -> int:
    """Number of nodes in the stream's capture, which this ends."""
    one.ask(f"g = WORD(); call('cuStreamEndCapture', {stream}, ctypes.byref(g))")
    one.ask("n = WORD(); call('cuGraphGetNodes', g.value, None, ctypes.byref(n))")
    one.ask("x = told('cuGraphInstantiateWithFlags', g.value, 0)")
    return int(one.ask("n.value"))


def test_launches_into_a_capture_need_no_lease(one: Program) -> None:
    one.ask("s = stream()")
    one.ask("begin_capture(s)")
    one.ask("launches(50, s)")
    assert nodes(one) == 50
    assert one.place.broker.joined == []


@pytest.mark.parametrize("mode", MODES)
def test_a_revocation_in_the_middle_of_a_capture_leaves_it_whole(one: Program, mode: int) -> None:
    broker = one.place.broker
    broker.generous = True
    one.ask("s, other = stream(), stream()")
    one.ask("launches(5, s); launches(5, other)")
    broker.generous = False
    one.ask(f"begin_capture(s, {mode})")
    one.ask("launch(s)")
    broker.wait_for(What.DRAINED, broker.close())
    one.ask("launch(s)")
    broker.wait_for(What.DRAINED, broker.timeslice(seconds=0.02))
    one.ask("launch(s)")
    assert nodes(one) == 3
    broker.sole()
    one.ask("call('cuGraphLaunch', x, s)")


@pytest.mark.parametrize("kind", [0, 1])
def test_streams_beside_a_capture_are_gated_and_drained(one: Program, kind: int) -> None:
    broker = one.place.broker
    broker.generous = True
    one.ask(f"s, other = stream({kind}), stream()")
    one.ask("launch(other)")
    broker.generous = False
    one.ask("begin_capture(s, 2)")
    one.ask("launch(s)")
    one.ask("launch(other, 300)")
    broker.wait_for(What.DRAINED, broker.close())
    assert not one.ask("is_busy(other)")
    one.say("launch(other)")
    assert not one.has_answered(within_s=A_WHILE_S)
    broker.sole()
    one.answer()
    assert nodes(one) == 1


def test_the_legacy_stream_is_left_alone_while_another_captures(one: Program) -> None:
    """An event there would invalidate the capture of a stream that it waits for."""
    broker = one.place.broker
    broker.generous = True
    one.ask("s = stream(0)")
    one.ask("launch(LEGACY, 100); launch(PER_THREAD, 100)")
    broker.generous = False
    one.ask("begin_capture(s, 2)")
    broker.wait_for(What.DRAINED, broker.close())
    one.ask("launch(s)")
    assert nodes(one) == 1
    epoch = broker.sole()
    broker.wait_for(What.IDLE, epoch)


def test_captures_and_leases_in_many_threads_disturb_nobody(one: Program) -> None:
    broker = one.place.broker
    one.ask("wrong = []")
    one.ask("ts = [in_thread(lambda: churn_graphs(wrong)) for _ in range(4)]")
    one.ask("f = in_thread(lambda: launches(300, stream(), 0.2))")
    for _ in range(30):
        broker.wait_for(What.DRAINED, broker.timeslice(seconds=0.01))
    broker.sole()
    one.ask("join_all()")
    assert one.ask("wrong") == []


def test_a_capture_that_did_not_begin_hides_nothing(one: Program) -> None:
    """During a capture, work in the legacy stream would not be drained."""
    broker = one.place.broker
    broker.generous = True
    one.ask("kernel(); s = stream(); launch()")
    broker.generous = False
    for name in ("cuStreamBeginRecaptureToGraph", "cuStreamBeginRecaptureToGraph_ptsz"):
        assert one.error(f"call('{name}', s, INT(0), 0, None, None)")
    one.ask("launch(LEGACY, 400)")
    broker.wait_for(What.DRAINED, broker.close())
    assert not one.ask("is_busy(LEGACY)")


def test_a_capture_that_failed_ends_too(one: Program) -> None:
    broker = one.place.broker
    broker.generous = True
    one.ask("s = stream()")
    one.ask("begin_capture(s)")
    assert one.error("call('cuStreamSynchronize', s)")
    assert one.error("end_capture(s)")
    one.ask("launch(s)")
    one.ask("synchronize(s)")


LONG_MS: Final = 600
LEFT_OPEN: Final = {
    "open": "begin_capture(x, 2)",
    "destroyed": "begin_capture(x, 2); call('cuStreamDestroy_v2', x)",
    "broken": "begin_capture(x, 0); cuda.cuStreamSynchronize(WORD(x))",
}


@pytest.mark.parametrize("stream", ["LEGACY", "PER_THREAD"])
@pytest.mark.parametrize("left", list(LEFT_OPEN))
def test_a_capture_that_is_left_frees_no_stream(one: Program, left: str, stream: str) -> None:
    broker = granted(one)
    one.ask(f"s, x = {stream}, stream()")
    one.ask(LEFT_OPEN[left])
    one.ask(f"launch(s, {LONG_MS})")
    broker.wait_for(What.DRAINED, broker.close())
    assert not one.ask("is_busy(s)")


JOINED: Final = {
    "the capturing stream": ("s = stream()", "begin_capture(s, 2)"),
    "one that joins it": (
        "s = stream(); o = stream(); e = told('cuEventCreate', 0)",
        "begin_capture(o, 2); call('cuEventRecord', e, o); call('cuStreamWaitEvent', s, e, 0)",
    ),
    "the legacy stream": ("s = LEGACY; o = stream(0)", "begin_capture(o, 2)"),
    "one that is destroyed in it": ("s = stream()", "begin_capture(s, 2); call('cuStreamDestroy_v2', s)"),
}


@pytest.mark.parametrize("where", list(JOINED))
def test_what_was_launched_before_a_capture_is_drained_though_it_goes_on(one: Program, where: str) -> None:
    broker = granted(one)
    made, begun = JOINED[where]
    one.ask(made)
    one.ask("d = told('cuEventCreate', 0)")
    one.ask(f"launch(s, {LONG_MS})")
    one.ask("call('cuEventRecord', d, s)")
    one.ask(begun)
    broker.wait_for(What.DRAINED, broker.close())
    one.ask("call('cuEventQuery', d)")


def test_what_was_not_counted_before_a_capture_is_drained_though_it_goes_on(one: Program) -> None:
    broker = granted(one)
    broker.free()
    one.ask("s, o, d = stream(), stream(), told('cuEventCreate', 0)")
    one.ask("launches(20000, o, 0.001)")
    one.ask(f"launch(s, {LONG_MS}); call('cuEventRecord', d, s)")
    one.ask("begin_capture(s, 2)")
    broker.wait_for(What.DRAINED, broker.close())
    one.ask("call('cuEventQuery', d)")
