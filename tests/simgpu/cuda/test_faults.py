"""Errors that programs get when a card, the driver, or another program fails."""

from __future__ import annotations

import os
import signal

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow

WAITS = """
begin(); s = stream(); k = kernel("sim_forever"); launching(k, s); tell("waits")
tell(ask("cuStreamSynchronize", s))
tell([ask("cuCtxSynchronize"), launching(k, s), ask("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 1)])
"""
HEALTHY = "begin(); launch('sim_1ms'); tell(ask('cuCtxSynchronize'))"


def test_an_illegal_address_ends_a_wait_and_stays_with_the_process_but_not_with_the_card(programs: Programs) -> None:
    with programs.running(WAITS) as program:
        assert program.answer() == "waits"
        programs.node.control(f"xid 0 31 {program.pid}")
        assert program.answer() == 700
        assert program.answer() == [700, 700, 700]
        assert programs.run(HEALTHY) == 0


def test_a_lost_card_answers_46(programs: Programs) -> None:
    with programs.running(WAITS) as program:
        assert program.answer() == "waits"
        programs.node.control("lose 0")
        assert program.answer() == 46
        assert program.answer() == [46, 46, 46]


@pytest.mark.parametrize("how", ["kill", "stop", "reload"])
def test_a_program_that_waits_when_the_driver_goes_gets_an_error(programs: Programs, how: str) -> None:
    with programs.running(WAITS) as program:
        assert program.answer() == "waits"
        if how == "reload":
            programs.node.control("reload")
        else:
            getattr(programs.node, how)()
        assert program.answer() == 999
        assert program.answer() == [999, 999, 999]


def test_callbacks_are_told_of_a_fault_and_host_functions_are_not_called(programs: Programs) -> None:
    with programs.running("""
        begin(); s = stream(); told = []; gate = threading.Event()
        plain = HOST_FUNCTION(lambda _: told.append("plain"))
        def heard(stream, status, data): told.append(status); gate.set()
        callback = CALLBACK(heard)
        launch("sim_forever", s); call("cuLaunchHostFunc", s, plain, None)
        call("cuStreamAddCallback", s, callback, None, 0); tell("waits"); gate.wait(DEADLINE_S); tell(told)
    """) as program:
        assert program.answer() == "waits"
        programs.node.control(f"xid 0 31 {program.pid}")
        assert program.answer() == [700]


def test_a_stopped_program_keeps_no_other_from_the_card(programs: Programs) -> None:
    with programs.running("begin(); tell(0)\nwhile True: launch('sim_1us'); call('cuCtxSynchronize')") as stopped:
        stopped.answer()
        for _ in range(5):
            os.kill(stopped.pid, signal.SIGSTOP)
            assert programs.run(HEALTHY) == 0
            os.kill(stopped.pid, signal.SIGCONT)
