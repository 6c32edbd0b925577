"""Streams that wait for the host: callbacks and values in memory."""

from __future__ import annotations

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow


def test_the_legacy_stream_waits_for_host_functions_of_blocking_ones_and_the_other_way_round(
    programs: Programs,
) -> None:
    answers = programs.run("""
        begin(); told = []
        for held, other in ((stream(0), 0), (0, stream(0))):
            gate = Gate(); gate.close(held); gate.entered.wait(DEADLINE_S)
            launch("sim_10us", other); behind = recorded(other)
            free = stream(1); launch("sim_10us", free); synchronize(free)
            told.append(ask("cuEventQuery", behind)); gate.open()
            call("cuEventSynchronize", behind); told.append(ask("cuEventQuery", behind))
        tell(told)
    """)
    assert answers == [600, 0, 600, 0]


def test_an_event_behind_a_host_function_holds_the_stream_that_waits_for_it(programs: Programs) -> None:
    answers = programs.run("""
        begin(); a, b = stream(), stream(); gate = Gate(); gate.close(a); one = recorded(a)
        call("cuStreamWaitEvent", b, one, 0); launch("sim_10us", b)
        gate.entered.wait(DEADLINE_S); held = ask("cuStreamQuery", b); gate.open(); synchronize(b)
        tell([held, ask("cuEventQuery", one)])
    """)
    assert answers == [600, 0]


def test_the_helper_thread_takes_no_signal(programs: Programs) -> None:
    blocked = programs.run("""
        begin(); s = stream(); ids = []
        heard = HOST_FUNCTION(lambda _: ids.append(threading.get_native_id()))
        call("cuLaunchHostFunc", s, heard, None); synchronize(s)
        status = open(f"/proc/self/task/{ids[0]}/status").read()
        tell(int(status.split("SigBlk:")[1].split()[0], 16))
    """)
    assert [number for number in (2, 10, 15, 17) if not blocked & 1 << number - 1] == []


def test_a_stream_waits_for_a_value_and_goes_on_when_it_is_written(programs: Programs) -> None:
    answers = programs.run("""
        begin(); a, b = stream(), stream(); word = made("cuMemAlloc_v2", 4096)
        call("cuMemsetD8_v2", word, 0, 4096)
        call("cuStreamWaitValue32_v2", a, word, 5, 0); launch("sim_1us", a)
        held = ask("cuStreamQuery", a)
        call("cuMemsetD32_v2", word, 4, 1); synchronize(b); still = ask("cuStreamQuery", a)
        call("cuMemsetD32_v2", word, 6, 1); synchronize(a)
        tell([held, still, ask("cuStreamQuery", a)])
    """)
    assert answers == [600, 600, 0]
