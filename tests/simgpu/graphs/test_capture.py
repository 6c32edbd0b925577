"""Stream capture: the graphs that it creates. The conformance cases cover the errors 900 to 908."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run

pytestmark = pytest.mark.slow

ACTIVE, INVALID = 1, 2


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
