"""Events: states, times, and what cannot be asked of them."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.cuda.programs import run, running

pytestmark = pytest.mark.slow


def test_an_event_is_not_ready_until_what_is_before_it_has_run(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); s = stream(); launch("sim_50ms", s); one = recorded(s)
        before = ask("cuEventQuery", one); call("cuEventSynchronize", one)
        tell([before, ask("cuEventQuery", one)])
        """,
    )
    assert answers == [600, 0]


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        ("a, b = event(), recorded(s)", 400),
        ("a, b = recorded(s), event(2); call('cuEventRecord', b, s)", 400),
        ("a, b = recorded(s), (launch('sim_forever', s), recorded(s))[1]", 600),
        ("a, b = recorded(s), 0", 400),
        ("a, b = recorded(s), recorded(s); synchronize(s); call('cuEventDestroy_v2', a)", 400),
    ],
    ids=["never-recorded", "without-timing", "not-done", "null", "destroyed"],
)
def test_elapsed_time_needs_two_timed_events_that_are_done(node: SimulatedNode, make: str, answer: int) -> None:
    assert answer == run(
        node,
        f"begin(); s = stream(); {make}\ntell(ask('cuEventElapsedTime', ctypes.byref(ctypes.c_float()), a, b))",
    )


def test_time_between_records_in_an_idle_stream_is_real_time(node: SimulatedNode) -> None:
    apart, real = run(
        node,
        """
        begin(); s = stream(); before = time.monotonic(); first = recorded(s); after = time.monotonic()
        eventually(lambda: time.monotonic() > after + 0.02)
        later = time.monotonic(); second = recorded(s); end = time.monotonic()
        tell([elapsed(first, second), [(later - after) * 1e3, (end - before) * 1e3]])
        """,
    )
    assert real[0] - 0.01 <= apart <= real[1] + 0.01


def test_elapsed_time_is_negative_backwards(node: SimulatedNode) -> None:
    times = run(
        node,
        """
        begin(); s = stream(); a = recorded(s); launch("sim_2ms", s); b = recorded(s)
        tell([elapsed(a, b), elapsed(b, a)])
        """,
    )
    assert times[0] == -times[1] > 0


def test_times_of_long_ago_stay_exact_while_another_process_shares_the_card(node: SimulatedNode) -> None:
    """Each gets half of the card, so every tenth of a second takes two, seen from events that were recorded at once."""
    with running(node, "begin(); launch('sim_forever'); tell(0); input()") as other:
        other.hear()
        times = run(
            node,
            """
            begin(); s = stream(); marks = [recorded(s)]
            for _ in range(4): launch("sim_100ms", s); marks.append(recorded(s))
            tell([elapsed(a, b) for a, b in zip(marks, marks[1:])])
            """,
        )
    assert times == pytest.approx([200.0] * 4, abs=12)


def test_events_for_other_processes_are_refused(node: SimulatedNode) -> None:
    answers = run(
        node,
        """
        begin(); one = event(6); handle = ctypes.create_string_buffer(64)
        tell([ask("cuEventCreate", ctypes.byref(ctypes.c_uint64()), 4), ask("cuIpcGetEventHandle", handle, one)])
        """,
    )
    assert answers == [1, 801]
