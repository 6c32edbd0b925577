"""Only a little work is in flight, by every way to launch."""

from __future__ import annotations

import pytest

from isolation.gates.stage import Program
from partage_isolation.wire.packets import What
from support.lender import Granter

pytestmark = pytest.mark.slow


def alone(one: Program) -> Granter:
    one.place.broker.generous = True
    one.ask("s = stream()")
    one.ask("launch(s)")
    one.place.broker.generous = False
    return one.place.broker


def test_a_flood_of_long_kernels_waits_for_each(one: Program) -> None:
    alone(one)
    one.ask("launches(2, s, 400); synchronize(s)")
    assert one.took_s("launches(4, s, 400)") > 0.2
    assert one.ask("is_busy(s)")


def test_a_flood_of_short_kernels_leaves_little_to_drain(one: Program) -> None:
    """A second of them, minus those that a driver's own queue holds."""
    broker = alone(one)
    one.ask("launches(200, s, 1)")
    one.ask("f = Flood(1000, s)")
    one.ask("time.sleep(0.2)")
    assert one.ask("f.in_flight()") < 700
    broker.wait_for(What.DRAINED, broker.close())
    broker.sole()


def test_streams_have_windows_of_their_own(one: Program) -> None:
    alone(one)
    one.ask("ss = [stream() for _ in range(8)]")
    one.ask("for x in ss: launches(2, x, 3000)")
    assert all(one.ask("[is_busy(x) for x in ss]"))


def test_a_graph_counts_as_what_it_took(one: Program) -> None:
    """Two may be in flight; the third waits for the first."""
    alone(one)
    one.ask("g = graph_of(4, 100, s)")
    one.ask("call('cuGraphLaunch', g, s); synchronize(s)")
    assert one.took_s("[call('cuGraphLaunch', g, s) for _ in range(3)] and None") > 0.3


def test_a_graph_that_is_gone_leaves_no_cost_behind(one: Program) -> None:
    alone(one)
    for ms in (50, 0.01):
        one.ask(f"g = graph_of(2, {ms}, s)")
        one.ask("[call('cuGraphLaunch', g, s) for _ in range(3)] and None")
        one.ask("call('cuGraphExecDestroy', g)")


def test_a_graph_that_is_changed_counts_as_what_it_takes_then(one: Program) -> None:
    alone(one)
    one.ask("g = graph_of(1, 0.01, s)")
    one.ask("graph_launches(3, g, s); synchronize(s)")
    one.ask("change_graph(g, 1, 400, s)")
    assert one.took_s("graph_launches(8, g, s)") > 0.4


def test_a_stream_that_waits_for_the_host_does_not_stop_the_host(one: Program) -> None:
    """The host launches more than fits, and only then writes the word that the first launch waits for."""
    alone(one)
    one.ask("m = ctypes.c_void_p(); call('cuMemHostAlloc', ctypes.byref(m), 64, INT(0))")
    one.ask("w = ctypes.c_uint32.from_address(m.value); w.value = 0")
    one.ask("call('cuStreamWaitValue32_v2', s, m.value, INT(1), INT(0))")
    one.ask("launches(5, s, 1)")
    one.ask("w.value = 1")
    one.ask("synchronize(s)")


def test_kernels_of_all_lengths_come_through(one: Program) -> None:
    broker = alone(one)
    one.say("[launch(s, (0.01, 1, 30)[n % 3]) for n in range(30)] and None")
    for _ in range(5):
        broker.wait_for(What.DRAINED, broker.timeslice(seconds=0.02))
    broker.sole()
    one.answer()


def test_graphs_run_ahead_where_the_card_is_ones_own(one: Program) -> None:
    """More launches than there are batches, and as many as complete within a twentieth of a second."""
    broker = alone(one)
    broker.free()
    one.ask("g = graph_of(2, 0.5, s)")
    one.ask("for _ in range(5): graph_launches(35, g, s); synchronize(s)")
    one.ask("graph_launches(17, g, s); e = mark(s); graph_launches(18, g, s)")
    assert one.ask("is_ahead(e)")


def test_graphs_of_layers_with_kernels_between_run_ahead_together(one: Program) -> None:
    broker = alone(one)
    broker.free()
    one.ask("gs = [graph_of(2, 0.2, s) for _ in range(5)]")
    one.ask("token = lambda: [(call('cuGraphLaunch', g, s), launch(s, 0.1)) for g in gs] and None")
    one.ask("for _ in range(60): token()")
    one.ask("synchronize(s)")
    one.ask("for _ in range(8): token()")
    one.ask("e = mark(s)")
    one.ask("for _ in range(8): token()")
    assert one.ask("is_ahead(e)")
