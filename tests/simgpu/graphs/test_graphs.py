"""Graphs: their time, their order, their copies, and their updates."""

from __future__ import annotations

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow


def test_a_graph_takes_as_long_as_its_longest_path(programs: Programs) -> None:
    """The longest path is 1 + 20 + 2, the parallel one 1 + 5 + 2."""
    ms = programs.run("""
        begin(); s = stream(); graph = made("cuGraphCreate", 0)
        root = kernel_node(graph, "sim_1ms"); long = kernel_node(graph, "sim_20ms", root)
        short = kernel_node(graph, "sim_5ms", root); kernel_node(graph, "sim_2ms", long, short)
        tell(run_of(graph, s))
    """)
    assert ms == pytest.approx(23, abs=0.001)


def test_a_captured_graph_takes_as_long_as_the_same_work_in_a_stream(programs: Programs) -> None:
    in_stream, in_graph = programs.run("""
        begin(); s = stream(); word = made("cuMemAlloc_v2", 1 << 20)
        def work():
            for name in ("sim_3ms", "sim_500us", "gemm"): launch(name, s)
            call("cuMemcpyHtoDAsync_v2", word, bytes(1 << 20), 1 << 20, s)
        launch("sim_300ms", s); work(); first = recorded(s); work(); ms = elapsed(first, recorded(s))
        capture(s); work(); tell([ms, run_of(captured(s), s)])
    """)
    assert in_graph == pytest.approx(in_stream, abs=0.001)


def test_children_stand_for_all_that_is_in_them(programs: Programs) -> None:
    ms = programs.run("""
        begin(); s = stream(); child, graph = made("cuGraphCreate", 0), made("cuGraphCreate", 0)
        kernel_node(child, "sim_4ms", kernel_node(child, "sim_3ms")); kernel_node(child, "sim_1ms")
        root = kernel_node(graph, "sim_10ms")
        node = made("cuGraphAddChildGraphNode", graph, handles(root), 1, child)
        kernel_node(graph, "sim_20ms", node); kernel_node(child, "sim_100ms")
        tell(run_of(graph, s))
    """)
    assert ms == pytest.approx(37, abs=0.001)


def test_host_functions_of_a_graph_run_in_their_place(programs: Programs) -> None:
    answers = programs.run("""
        begin(); s = stream(); gate = Gate(); capture(s); launch("sim_20ms", s); gate.close(s); launch("sim_1ms", s)
        one = executable(captured(s)); call("cuGraphLaunch", one, s); end = recorded(s)
        gate.entered.wait(DEADLINE_S); held = ask("cuEventQuery", end); gate.open(); synchronize(s)
        tell([held, ask("cuEventQuery", end)])
    """)
    assert answers == [600, 0]


def test_events_in_a_graph_happen_at_their_place_at_each_launch(programs: Programs) -> None:
    ms = programs.run("""
        begin(); s = stream(); graph = made("cuGraphCreate", 0); first, last = event(), event()
        a = kernel_node(graph, "sim_7ms"); begin_at = made("cuGraphAddEventRecordNode", graph, handles(a), 1, first)
        b = kernel_node(graph, "sim_5ms", begin_at); made("cuGraphAddEventRecordNode", graph, handles(b), 1, last)
        kernel_node(graph, "sim_20ms", b)
        call("cuGraphLaunch", executable(graph), s); tell(elapsed(first, last))
    """)
    assert ms == pytest.approx(5, abs=0.001)


def test_a_captured_launch_of_a_graph_becomes_a_child(programs: Programs) -> None:
    ms = programs.run("""
        begin(); s = stream(); graph = made("cuGraphCreate", 0); kernel_node(graph, "sim_5ms")
        inner = executable(graph)
        capture(s); call("cuGraphLaunch", inner, s); launch("sim_2ms", s); call("cuGraphLaunch", inner, s)
        tell(run_of(captured(s), s))
    """)
    assert ms == pytest.approx(12, abs=0.001)


# ---- Captures --------------------------------------------------------------------------------------------------------


ACTIVE = 1


def test_streams_fork_and_join_by_events(programs: Programs) -> None:
    ms = programs.run("""
        begin(); a, b = stream(), stream(); forked, joined = event(), event()
        capture(a); launch("sim_1ms", a); call("cuEventRecord", forked, a); call("cuStreamWaitEvent", b, forked, 0)
        launch("sim_20ms", b); launch("sim_30ms", a)
        call("cuEventRecord", joined, b); call("cuStreamWaitEvent", a, joined, 0); launch("sim_2ms", a)
        tell(run_of(captured(a), a))
    """)
    assert ms == pytest.approx(33, abs=0.001)


def test_a_capture_into_a_graph_goes_on_where_it_is_told(programs: Programs) -> None:
    ms, count = programs.run("""
        begin(); s = stream(); graph = made("cuGraphCreate", 0); first = kernel_node(graph, "sim_10ms")
        kernel_node(graph, "sim_1ms")
        call("cuStreamBeginCaptureToGraph", s, graph, handles(first), None, 1, 0)
        launch("sim_5ms", s); same = captured(s) == graph; count = ctypes.c_size_t()
        call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        tell([run_of(graph, s), count.value if same else 0])
    """)
    assert ms == pytest.approx(15, abs=0.001)
    assert count == 3


def test_a_capture_tells_where_it_is(programs: Programs) -> None:
    told = programs.run("""
        begin(); s = stream(); capture(s); launch("sim_10ms", s)
        status, number, graph, nodes = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p()
        count = ctypes.c_size_t()
        def info():
            call("cuStreamGetCaptureInfo_v2", s, *map(ctypes.byref, (status, number, graph, nodes, count)))
            return [status.value, number.value > 0, count.value]
        tell(info())
    """)
    assert told == [ACTIVE, True, 1]


def test_a_destroyed_stream_takes_its_capture_along(programs: Programs) -> None:
    answers = programs.run("""
        begin(); s = stream(0); capture(s); launch("sim_1ms", s); call("cuStreamDestroy_v2", s)
        tell([launching(kernel("sim_1us"), 0), ask("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 4096)])
    """)
    assert answers == [0, 0]
