"""Stream capture: what becomes a graph, and the errors 900 to 908."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run

pytestmark = pytest.mark.slow

NONE, ACTIVE, INVALID = 0, 1, 2


def test_captured_work_is_not_done_but_written_down(node: SimulatedNode) -> None:
    status, idle, kinds, ran = run(
        node,
        """
        begin(); s = stream(); nothing = HOST_FUNCTION(lambda _: None)
        capture(s); launch("sim_forever", s); call("cuLaunchHostFunc", s, nothing, None); launch("sim_1ms", s)
        status = capture_status(s); graph = captured(s); idle = ask("cuStreamQuery", s)
        count = ctypes.c_size_t(8); nodes = (ctypes.c_uint64 * 8)()
        call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
        tell([status, idle, [told("cuGraphNodeGetType", n, kind=ctypes.c_int) for n in nodes[:count.value]],
              capture_status(s)])
        """,
    )
    assert (status, idle, kinds, ran) == (ACTIVE, 0, [0, 3, 0], NONE)


def test_streams_fork_and_join_by_events(node: SimulatedNode) -> None:
    ms = run(
        node,
        """
        begin(); a, b = stream(), stream(); forked, joined = event(), event()
        capture(a); launch("sim_1ms", a); call("cuEventRecord", forked, a); call("cuStreamWaitEvent", b, forked, 0)
        launch("sim_20ms", b); launch("sim_30ms", a)
        call("cuEventRecord", joined, b); call("cuStreamWaitEvent", a, joined, 0); launch("sim_2ms", a)
        tell(run_of(captured(a), a))
        """,
    )
    assert ms == pytest.approx(33, abs=0.001)


FORBIDDEN = {
    "query": ("ask('cuStreamQuery', s)", 900, INVALID),
    "synchronize": ("ask('cuStreamSynchronize', s)", 900, INVALID),
    "context": ("ask('cuCtxSynchronize')", 900, INVALID),
    "callback": ("ask('cuStreamAddCallback', s, CALLBACK(lambda *_: None), None, 0)", 900, INVALID),
    "malloc": ("ask('cuMemAlloc_v2', ctypes.byref(ctypes.c_uint64()), 4096)", 900, INVALID),
    "legacy launch": ("launching(kernel('sim_1us'), 0)", 906, INVALID),
    "legacy synchronize": ("ask('cuStreamSynchronize', 0)", 906, INVALID),
    "legacy question": ("ask('cuStreamIsCapturing', 0, ctypes.byref(ctypes.c_int()))", 906, ACTIVE),
    "again": ("ask('cuStreamBeginCapture_v2', s, 0)", 401, ACTIVE),
    "captured event": ("ask('cuEventQuery', recorded(s))", 907, ACTIVE),
    "wait for captured event": ("ask('cuEventSynchronize', recorded(s))", 907, ACTIVE),
    "isolation": ("ask('cuStreamWaitEvent', s, before, 0)", 905, INVALID),
    "other's end": ("ask('cuStreamEndCapture', free, ctypes.byref(ctypes.c_uint64()))", 401, ACTIVE),
    "no mode": ("ask('cuStreamBeginCapture_v2', free, 3)", 1, ACTIVE),
    "legacy capture": ("ask('cuStreamBeginCapture_v2', 0, 0)", 900, ACTIVE),
    "free launch": ("launching(kernel('sim_1us'), free)", 0, ACTIVE),
}


@pytest.mark.parametrize(("what", "answer", "status"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_a_capture_forbids_and_what_makes_it_invalid(
    node: SimulatedNode, what: str, answer: int, status: int
) -> None:
    assert [answer, status] == run(
        node,
        f"""
        begin(); s, free = stream(0), stream(1); before = recorded(free)
        capture(s); tell([{what}, capture_status(s)])
        """,
    )


def test_an_invalid_capture_takes_nothing_more_and_ends_with_901_and_no_graph(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); capture(s); launch("sim_1ms", s); ask("cuStreamQuery", s)
        graph = ctypes.c_uint64(7)
        tell([launching(kernel("sim_1us"), s), ask("cuStreamEndCapture", s, ctypes.byref(graph)), graph.value,
              capture_status(s), launching(kernel("sim_1us"), s)])
        """,
    )
    assert answers == [901, 901, 0, NONE, 0]


def test_a_fork_that_is_not_joined_is_904(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); a, b = stream(), stream(); capture(a); one = recorded(a)
        call("cuStreamWaitEvent", b, one, 0); launch("sim_1ms", b); graph = ctypes.c_uint64(7)
        inner = ask("cuStreamEndCapture", b, ctypes.byref(ctypes.c_uint64()))
        tell([inner, ask("cuStreamEndCapture", a, ctypes.byref(graph)), graph.value, capture_status(b)])
        """,
    )
    assert answers == [903, 904, 0, NONE]


def test_two_captures_cannot_be_merged(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); a, b = stream(), stream(); capture(a); capture(b); one = recorded(a)
        tell([ask("cuStreamWaitEvent", b, one, 0), capture_status(a), capture_status(b)])
        """,
    )
    assert answers == [902, INVALID, INVALID]


@pytest.mark.parametrize(("mode", "answer"), [(0, 908), (1, 908), (2, 0)])
def test_only_a_relaxed_capture_is_ended_by_another_thread(node: SimulatedNode, mode: int, answer: int) -> None:
    assert answer == run(
        node,
        f"""
        context = begin(); s = stream(); capture(s, {mode}); answers = []
        def end():
            call("cuCtxSetCurrent", context)
            answers.append(ask("cuStreamEndCapture", s, ctypes.byref(ctypes.c_uint64())))
        other = threading.Thread(target=end); other.start(); other.join(); tell(answers[0])
        """,
    )


@pytest.mark.parametrize("mine", [0, 1, 2])
@pytest.mark.parametrize("theirs", [0, 1, 2])
@pytest.mark.parametrize("same_thread", [True, False])
def test_who_may_allocate_while_somebody_captures(
    node: SimulatedNode, *, mine: int, theirs: int, same_thread: bool
) -> None:
    """A thread in global mode minds global captures of all and its own; in thread-local mode its own; relaxed none."""
    minds = mine != 2 and theirs != 2 and (same_thread or (mine == 0 and theirs == 0))
    answers = run(
        node,
        f"""
        context = begin(); s = stream(); capture(s, {theirs}); answers = []
        def allocate():
            call("cuCtxSetCurrent", context); mode = ctypes.c_int({mine})
            call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
            answers.append(ask("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 4096))
        if {same_thread}: allocate()
        else:
            other = threading.Thread(target=allocate); other.start(); other.join()
        tell([*answers, capture_status(s)])
        """,
    )
    assert answers == ([900, INVALID] if minds else [0, ACTIVE])


def test_a_capture_into_a_graph_goes_on_where_it_is_told(node: SimulatedNode) -> None:
    ms, count = run(
        node,
        """
        begin(); s = stream(); graph = made("cuGraphCreate", 0); first = kernel_node(graph, "sim_10ms")
        kernel_node(graph, "sim_1ms")
        call("cuStreamBeginCaptureToGraph", s, graph, handles(first), None, 1, 0)
        launch("sim_5ms", s); same = captured(s) == graph; count = ctypes.c_size_t()
        call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        tell([run_of(graph, s), count.value if same else 0])
        """,
    )
    assert ms == pytest.approx(15, abs=0.001)
    assert count == 3


def test_a_capture_tells_where_it_is(node: SimulatedNode) -> None:
    told = run(
        node,
        """
        begin(); s = stream(); capture(s); launch("sim_10ms", s)
        status, number, graph, nodes = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p()
        count = ctypes.c_size_t()
        def info():
            call("cuStreamGetCaptureInfo_v2", s, *map(ctypes.byref, (status, number, graph, nodes, count)))
            return [status.value, number.value > 0, count.value]
        tell(info())
        """,
    )
    assert told == [ACTIVE, True, 1]


def test_a_destroyed_stream_takes_its_capture_along(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(0); capture(s); launch("sim_1ms", s); call("cuStreamDestroy_v2", s)
        tell([launching(kernel("sim_1us"), 0), ask("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 4096)])
        """,
    )
    assert answers == [0, 0]
