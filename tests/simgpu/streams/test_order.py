"""Order of work: separate streams, the legacy stream, a thread's default stream; measured by events' times."""

from __future__ import annotations

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow


def test_a_stream_waits_for_an_event_and_a_recorded_again_event_means_its_newest_record(programs: Programs) -> None:
    times = programs.run("""
        begin(); a, b, c = stream(), stream(), stream(); gate = Gate(); gate.close(a)
        start = recorded(a)
        launch("sim_50ms", a); one = recorded(a)
        call("cuStreamWaitEvent", b, one, 0)
        launch("sim_50ms", a); call("cuEventRecord", one, a)
        call("cuStreamWaitEvent", c, one, 0)
        launch("sim_1ms", b); launch("sim_1ms", c)
        marks = [recorded(b), recorded(c)]; gate.open()
        tell([elapsed(start, each) for each in marks])
    """)
    assert times[0] >= 50.9
    assert times[1] - times[0] == pytest.approx(50, abs=0.001)


def test_a_stream_waits_for_an_event_of_another_device(programs: Programs) -> None:
    answers = programs.run("""
        begin(0); a = stream(); launch("sim_forever", a); never = recorded(a)
        begin(1); b = stream(); launch("sim_1ms", b); synchronize(b)
        call("cuStreamWaitEvent", b, never, 0)
        tell([ask("cuStreamQuery", b), launching(kernel("sim_1ms"), b), ask("cuStreamQuery", b)])
    """)
    assert answers == [600, 0, 600]


def test_the_whole_context_is_waited_for(programs: Programs) -> None:
    answers = programs.run("""
        begin(); streams = [stream(0), stream(1), 0]
        for each in streams: launch("sim_500ms", each)
        before = ask("cuStreamQuery", streams[1])
        call("cuCtxSynchronize")
        tell([before, *(ask("cuStreamQuery", each) for each in streams)])
    """)
    assert answers == [600, 0, 0, 0]


def test_work_that_begins_late_does_not_end_in_the_past(programs: Programs) -> None:
    apart = programs.run("""
        begin(); a, b = stream(), stream()
        launch("sim_200ms", a); start = recorded(b)
        began = time.monotonic(); eventually(lambda: time.monotonic() > began + 0.05)
        launch("sim_1ms", b)
        tell(elapsed(start, recorded(b)))
    """)
    assert apart >= 51


def test_time_between_records_in_an_idle_stream_is_real_time(programs: Programs) -> None:
    apart, real = programs.run("""
        begin(); s = stream(); before = time.monotonic(); first = recorded(s); after = time.monotonic()
        eventually(lambda: time.monotonic() > after + 0.02)
        later = time.monotonic(); second = recorded(s); end = time.monotonic()
        tell([elapsed(first, second), [(later - after) * 1e3, (end - before) * 1e3]])
    """)
    assert real[0] - 0.01 <= apart <= real[1] + 0.01


def test_times_of_long_ago_stay_exact_while_another_process_shares_the_card(programs: Programs) -> None:
    """Each gets half of the card, so every tenth of a second takes two, by events that were recorded at once."""
    with programs.running("begin(); launch('sim_forever'); tell(0); input()") as other:
        other.answer()
        times = programs.run("""
            begin(); s = stream(); marks = [recorded(s)]
            for _ in range(4): launch("sim_100ms", s); marks.append(recorded(s))
            tell([elapsed(a, b) for a, b in zip(marks, marks[1:])])
        """)
    assert times == pytest.approx([200.0] * 4, abs=12)
