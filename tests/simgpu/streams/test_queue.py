"""The launch queue is bounded: a program can be 1024 launches ahead of its card, and then waits."""

from __future__ import annotations

import pytest

from simgpu.cuda.programs import Programs

pytestmark = pytest.mark.slow


def test_a_full_queue_holds_only_its_own_stream(programs: Programs) -> None:
    with programs.running("""
        context = begin(); full, other = stream(), stream(); k = kernel("sim_forever")
        for _ in range(1024): launching(k, full)
        def stuck():
            call("cuCtxSetCurrent", context); tell("blocks"); launching(k, full); tell("wrong")
        threading.Thread(target=stuck, daemon=True).start()
        launch("sim_1ms", other); synchronize(other); tell("done"); input()
    """) as program:
        assert sorted([program.answer(), program.answer()]) == ["blocks", "done"]


def test_queues_hold_what_waits_for_the_host_too(programs: Programs) -> None:
    with programs.running("""
        context = begin(); s = stream(); gate = Gate(); gate.close(s); k = kernel("sim_1us")
        for _ in range(1023): launching(k, s)
        def more():
            call("cuCtxSetCurrent", context); launching(k, s); launching(k, s); tell("went on")
        waits = threading.Thread(target=more); waits.start()
        tell("full"); input(); gate.open(); waits.join(); synchronize(s); tell(ask("cuStreamQuery", s))
    """) as program:
        assert program.answer() == "full"
        program.say("go")
        assert program.answer() == "went on"
        assert program.answer() == 0


def test_200_threads_launch_in_streams_of_their_own_and_in_one(programs: Programs) -> None:
    answers = programs.run("""
        context = begin(); shared = stream(); faults = []
        def work():
            call("cuCtxSetCurrent", context); own = stream(); k = kernel("sim_1us")
            for _ in range(50): faults.append(launching(k, own) or launching(k, shared) or launching(k, 0, "_ptsz"))
            faults.append(ask("cuStreamSynchronize", own)); faults.append(ask("cuStreamSynchronize_ptsz", 0))
        threads = [threading.Thread(target=work) for _ in range(200)]
        for each in threads: each.start()
        for each in threads: each.join()
        call("cuCtxSynchronize"); tell([len(faults), max(faults), ask("cuStreamQuery", shared)])
    """)
    assert answers == [200 * 52, 0, 0]
