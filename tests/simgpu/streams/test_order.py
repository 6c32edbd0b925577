"""What runs after what: streams of their own, the legacy stream, a thread's default stream. Seen by events' times."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run

pytestmark = pytest.mark.slow

TWO = """
def both(first, second, first_suffix="", second_suffix=""):
    # milliseconds from the end of a kernel of 100 ms to the end of one of 100 ms that was launched after it
    begin_of = recorded(first, first_suffix)
    launch("sim_100ms", first, first_suffix)
    end_of_first = recorded(first, first_suffix)
    launch("sim_100ms_b", second, second_suffix)
    return elapsed(end_of_first, recorded(second, second_suffix))

begin()
"""


def test_kernels_of_a_stream_run_one_after_the_other_for_as_long_as_their_names_say(node: SimulatedNode) -> None:
    times = run(
        node,
        """
        begin(); s = stream()
        launch("sim_20ms", s); a = recorded(s)
        launch("sim_2ms", s); b = recorded(s)
        launch("sim_300us_gemm", s); c = recorded(s)
        launch("gemm", s); d = recorded(s)
        tell([elapsed(a, b), elapsed(b, c), elapsed(c, d)])
        """,
    )
    assert times == pytest.approx([2.0, 0.3, 0.01], abs=0.0001)


def test_streams_of_a_process_overlap(node: SimulatedNode) -> None:
    assert run(node, TWO + "tell(both(stream(), stream()))") < 50


@pytest.mark.parametrize(
    ("first", "second"), [("0", "stream(0)"), ("stream(0)", "0"), ("1", "stream(0)"), ("stream(0)", "1")]
)
def test_the_legacy_stream_and_a_blocking_one_wait_for_each_other(node: SimulatedNode, first: str, second: str) -> None:
    assert run(node, TWO + f"tell(both({first}, {second}))") >= 99.9


@pytest.mark.parametrize(("first", "second"), [("0", "stream(1)"), ("stream(1)", "0")])
def test_the_legacy_stream_and_a_non_blocking_one_do_not(node: SimulatedNode, first: str, second: str) -> None:
    assert run(node, TWO + f"tell(both({first}, {second}))") < 50


@pytest.mark.parametrize("call", ["both(0, 0, '_ptsz', '')", "both(0, 0, '', '_ptsz')", "both(2, 1)", "both(1, 2)"])
def test_a_threads_default_stream_is_a_blocking_one(node: SimulatedNode, call: str) -> None:
    assert run(node, TWO + f"tell({call})") >= 99.9


def test_default_streams_of_two_threads_overlap(node: SimulatedNode) -> None:
    apart = run(
        node,
        """
        context = begin(); ends = {}; together = threading.Barrier(2)
        def work(name):
            call("cuCtxSetCurrent", context)
            function = kernel("sim_100ms")
            together.wait()
            launching(function, 0, "_ptsz")
            ends[name] = recorded(0, "_ptsz")
            call("cuEventSynchronize", ends[name])
        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for each in threads: each.start()
        for each in threads: each.join()
        tell(abs(elapsed(ends[0], ends[1])))
        """,
    )
    assert apart < 90


def test_a_stream_waits_for_an_event_and_a_recorded_again_event_means_its_newest_record(node: SimulatedNode) -> None:
    times = run(
        node,
        """
        begin(); a, b, c = stream(), stream(), stream()
        start = recorded(a)
        launch("sim_50ms", a); one = recorded(a)
        call("cuStreamWaitEvent", b, one, 0)
        launch("sim_50ms", a); call("cuEventRecord", one, a)
        call("cuStreamWaitEvent", c, one, 0)
        launch("sim_1ms", b); launch("sim_1ms", c)
        tell([elapsed(start, recorded(b)), elapsed(start, recorded(c))])
        """,
    )
    assert times[0] >= 50.9
    assert times[1] - times[0] == pytest.approx(50, abs=0.001)


def test_waiting_for_an_event_that_was_never_recorded_waits_for_nothing(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); one = event()
        tell([ask("cuStreamWaitEvent", s, one, 0), ask("cuEventQuery", one), ask("cuStreamQuery", s)])
        """,
    )
    assert answers == [0, 0, 0]


def test_a_stream_waits_for_an_event_of_another_device(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(0); a = stream(); launch("sim_forever", a); never = recorded(a)
        begin(1); b = stream(); launch("sim_1ms", b); synchronize(b)
        call("cuStreamWaitEvent", b, never, 0)
        tell([ask("cuStreamQuery", b), launching(kernel("sim_1ms"), b), ask("cuStreamQuery", b)])
        """,
    )
    assert answers == [600, 0, 600]


def test_the_whole_context_is_waited_for(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); streams = [stream(0), stream(1), 0]
        for each in streams: launch("sim_5ms", each)
        before = ask("cuStreamQuery", streams[1])
        call("cuCtxSynchronize")
        tell([before, *(ask("cuStreamQuery", each) for each in streams)])
        """,
    )
    assert answers == [600, 0, 0, 0]


def test_work_of_a_destroyed_stream_is_still_done_and_its_handle_is_void(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); launch("sim_20ms", s); one = recorded(s)
        gone = ask("cuStreamDestroy_v2", s)
        early = ask("cuEventQuery", one)
        call("cuEventSynchronize", one)
        tell([gone, early, ask("cuStreamQuery", s), launching(kernel("sim_1ms"), s)])
        """,
    )
    assert answers == [0, 600, 400, 400]


def test_work_that_begins_late_does_not_end_in_the_past(node: SimulatedNode) -> None:
    apart = run(
        node,
        """
        begin(); a, b = stream(), stream()
        launch("sim_200ms", a); start = recorded(b)
        began = time.monotonic(); eventually(lambda: time.monotonic() > began + 0.05)
        launch("sim_1ms", b)
        tell(elapsed(start, recorded(b)))
        """,
    )
    assert apart >= 51
