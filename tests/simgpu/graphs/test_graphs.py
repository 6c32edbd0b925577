"""Graphs: their time, their order, their copies, and what can be changed of them."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run

pytestmark = pytest.mark.slow


def test_a_graph_takes_as_long_as_its_longest_path(node: SimulatedNode) -> None:
    """One after the other 1 + 20 + 2, beside 1 + 5 + 2."""
    ms = run(
        node,
        """
        begin(); s = stream(); graph = made("cuGraphCreate", 0)
        root = kernel_node(graph, "sim_1ms"); long = kernel_node(graph, "sim_20ms", root)
        short = kernel_node(graph, "sim_5ms", root); kernel_node(graph, "sim_2ms", long, short)
        tell(run_of(graph, s))
        """,
    )
    assert ms == pytest.approx(23, abs=0.001)


def test_a_captured_graph_takes_as_long_as_the_same_work_in_a_stream(node: SimulatedNode) -> None:
    in_stream, in_graph = run(
        node,
        """
        begin(); s = stream(); word = made("cuMemAlloc_v2", 1 << 20)
        def work():
            for name in ("sim_3ms", "sim_500us", "gemm"): launch(name, s)
            call("cuMemcpyHtoDAsync_v2", word, bytes(1 << 20), 1 << 20, s)
        launch("sim_300ms", s); work(); first = recorded(s); work(); ms = elapsed(first, recorded(s))
        capture(s); work(); tell([ms, run_of(captured(s), s)])
        """,
    )
    assert in_graph == pytest.approx(in_stream, abs=0.001)


def test_children_stand_for_all_that_is_in_them(node: SimulatedNode) -> None:
    ms = run(
        node,
        """
        begin(); s = stream(); child, graph = made("cuGraphCreate", 0), made("cuGraphCreate", 0)
        kernel_node(child, "sim_4ms", kernel_node(child, "sim_3ms")); kernel_node(child, "sim_1ms")
        root = kernel_node(graph, "sim_10ms")
        node = made("cuGraphAddChildGraphNode", graph, handles(root), 1, child)
        kernel_node(graph, "sim_20ms", node); kernel_node(child, "sim_100ms")
        tell(run_of(graph, s))
        """,
    )
    assert ms == pytest.approx(37, abs=0.001)


def test_launches_of_one_executable_never_overlap_and_those_of_two_do(node: SimulatedNode) -> None:
    same, different = run(
        node,
        """
        begin(); a, b = stream(), stream(); graph = made("cuGraphCreate", 0); kernel_node(graph, "sim_100ms")
        def apart(first, second):
            call("cuGraphLaunch", first, a); end = recorded(a); call("cuGraphLaunch", second, b)
            return elapsed(end, recorded(b))
        one, other = executable(graph), executable(graph)
        tell([apart(one, one), apart(one, other)])
        """,
    )
    assert same >= 99.9
    assert different < 50


def test_host_functions_of_a_graph_run_in_their_place(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); gate = Gate(); capture(s); launch("sim_20ms", s); gate.close(s); launch("sim_1ms", s)
        one = executable(captured(s)); call("cuGraphLaunch", one, s); end = recorded(s)
        gate.entered.wait(DEADLINE_S); held = ask("cuEventQuery", end); gate.open(); synchronize(s)
        tell([held, ask("cuEventQuery", end)])
        """,
    )
    assert answers == [600, 0]


def test_events_in_a_graph_happen_at_their_place_at_each_launch(node: SimulatedNode) -> None:
    ms = run(
        node,
        """
        begin(); s = stream(); graph = made("cuGraphCreate", 0); first, last = event(), event()
        a = kernel_node(graph, "sim_7ms"); begin_at = made("cuGraphAddEventRecordNode", graph, handles(a), 1, first)
        b = kernel_node(graph, "sim_5ms", begin_at); made("cuGraphAddEventRecordNode", graph, handles(b), 1, last)
        kernel_node(graph, "sim_20ms", b)
        call("cuGraphLaunch", executable(graph), s); tell(elapsed(first, last))
        """,
    )
    assert ms == pytest.approx(5, abs=0.001)


def test_copies_in_a_graph_happen_when_it_is_launched(node: SimulatedNode) -> None:
    before, after = run(
        node,
        """
        begin(); s = stream(); word = made("cuMemAlloc_v2", 16); back = (ctypes.c_uint32 * 4)()
        call("cuMemsetD8_v2", word, 0, 16)
        def read():
            call("cuMemcpyDtoH_v2", back, word, 16); return list(back)
        capture(s); nines = (ctypes.c_uint32 * 4)(9, 9, 9, 9)
        call("cuMemcpyHtoDAsync_v2", word, nines, 16, s); one = executable(captured(s))
        before = read(); call("cuGraphLaunch", one, s); synchronize(s); tell([before, read()])
        """,
    )
    assert (before, after) == ([0] * 4, [9] * 4)


def test_circles_and_strangers_are_refused(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); graph, other = made("cuGraphCreate", 0), made("cuGraphCreate", 0)
        a = kernel_node(graph, "sim_1ms"); b = kernel_node(graph, "sim_1ms", a); c = kernel_node(other, "sim_1ms")
        one = ctypes.byref(ctypes.c_uint64())
        def edge(x, y): return ask("cuGraphAddDependencies", graph, handles(x), handles(y), 1)
        told = [edge(a, c), edge(a, a), edge(a, b), edge(b, a), ask("cuGraphInstantiateWithFlags", one, graph, 0)]
        told.append(ask("cuGraphAddEmptyNode", one, graph, handles(c), 1))
        tell(told)
        """,
    )
    assert answers == [1, 1, 1, 0, 1, 1]


def test_nodes_are_told_in_part_or_by_number(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); graph = made("cuGraphCreate", 0); a = kernel_node(graph, "x"); b = kernel_node(graph, "y", a)
        c = kernel_node(graph, "z", a, b); out = (ctypes.c_uint64 * 4)(); count = ctypes.c_size_t(4)
        call("cuGraphGetNodes", graph, out, ctypes.byref(count)); told = [list(out) == [a, b, c, 0], count.value]
        call("cuGraphGetRootNodes", graph, None, ctypes.byref(count)); told.append(count.value)
        clone = made("cuGraphClone", graph)
        twin = made("cuGraphNodeFindInClone", c, clone); told.append(twin != c)
        call("cuGraphDestroyNode", b); call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        told.append(count.value); call("cuGraphGetNodes", clone, None, ctypes.byref(count))
        tell([*told, count.value])
        """,
    )
    assert answers == [True, 3, 1, True, 2, 3]


def test_an_executable_is_updated_by_a_graph_of_its_form_only(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream()
        def form(*names):
            graph = made("cuGraphCreate", 0); last = []
            for name in names: last = [kernel_node(graph, name, *last) if name else
                                       made("cuGraphAddEmptyNode", graph, handles(*last), len(last))]
            return graph
        one = executable(form("sim_1ms", "sim_2ms")); info = (ctypes.c_uint64 * 3)()
        def update(*names): return [ask("cuGraphExecUpdate_v2", one, form(*names), info), info[0] & 0xFFFFFFFF]
        tell([update("sim_3ms", "sim_4ms"), run_of(one, s, instantiated=True), update("sim_1ms"), update("sim_1ms", ""),
              run_of(one, s, instantiated=True)])
        """,
    )
    assert [answers[0], answers[2], answers[3]] == [[0, 0], [910, 2], [910, 3]]
    assert answers[1] == answers[4] == pytest.approx(7, abs=0.001)


def test_a_captured_launch_of_a_graph_becomes_a_child(node: SimulatedNode) -> None:
    ms = run(
        node,
        """
        begin(); s = stream(); graph = made("cuGraphCreate", 0); kernel_node(graph, "sim_5ms")
        inner = executable(graph)
        capture(s); call("cuGraphLaunch", inner, s); launch("sim_2ms", s); call("cuGraphLaunch", inner, s)
        tell(run_of(captured(s), s))
        """,
    )
    assert ms == pytest.approx(12, abs=0.001)
