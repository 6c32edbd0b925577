"""Processes that fork, execute others, stop, and end, also while the card has work of them."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from isolation.gates.stage import A_WHILE_S, NOT_INITIALIZED, Place, Program
from isolation.memory.stage import objects_in
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow


def test_a_child_joins_for_itself(place: Place) -> None:
    """The child was forked before its parent first used the card."""
    place.broker.generous = True
    with Program(place) as started:
        child = started.ask("in_child(lambda: (start(), launch(), call('cuCtxSynchronize')))")
        assert child == 0
        started.ask("start()")
        started.ask("launch()")
        pids = [pid for pid, _ in place.broker.joined]
        assert len(pids) == len(set(pids)) == 2


def test_a_child_of_a_program_that_computes_is_refused_as_by_the_driver(one: Program) -> None:
    one.place.broker.generous = True
    one.ask("launch()")
    assert one.ask("in_child(launch)") == NOT_INITIALIZED
    one.ask("launch()")


def test_forks_in_the_middle_of_leases_hang_nobody(one: Program) -> None:
    broker = one.place.broker
    one.say("f = in_thread(lambda: launches(400, stream(), 0.5))")
    one.answer()
    one.say("[in_child(lambda: None) for _ in range(30)]")
    for _ in range(10):
        broker.wait_for(What.DRAINED, broker.timeslice(seconds=0.02))
    broker.sole()
    assert one.answer() == [0] * 30
    one.ask("f.join()")


def test_what_a_program_executes_begins_anew(one: Program) -> None:
    one.place.broker.generous = True
    one.ask("launch()")
    one.say("os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])")
    one.place.broker.wait(lambda: b"again" in Path(f"/proc/{one.pid}/cmdline").read_bytes(), "it executes another")
    one.ask("start()")
    one.ask("launch()")
    assert [pid for pid, _ in one.place.broker.joined] == [one.pid] * 2


def test_a_process_that_stood_still_says_what_is_true_now(one: Program) -> None:
    broker = one.place.broker
    broker.generous = True
    one.ask("launch(stream(), 50)")
    broker.generous = False
    one.send(signal.SIGSTOP)
    epochs = [broker.close(), broker.sole(), broker.close()]
    time.sleep(A_WHILE_S)
    assert not broker.heard_of(What.DRAINED, epochs[-1])
    one.send(signal.SIGCONT)
    broker.wait_for(What.DRAINED, epochs[-1])
    assert not broker.heard_of(What.DRAINED, epochs[0])


def test_a_thread_that_is_killed_at_the_gate_takes_nobody_with_it(place: Place) -> None:
    with place.program() as other:
        one = Program(place)
        one.ask("start()")
        one.say("launch()")
        place.broker.wait_for(What.WANT, 0, pid=one.pid)
        one.kill()
        other.say("launch()")
        place.broker.wait_for(What.WANT, 0, pid=other.pid)
        place.broker.sole()
        other.answer()


def test_nothing_of_ours_calls_a_driver_that_has_taken_itself_down(place: Place) -> None:
    """The program's work is not done, and the process exits slowly."""
    with Program(place, more={"SIMGPU_ABORTS_LATE_CALLS": "1"}) as one:
        one.ask(f"exits_slowly({A_WHILE_S})")
        one.ask("start()")
        place.broker.generous = True
        one.ask("launch(stream(), 60000)")
        place.broker.generous = False
        place.broker.close()
        assert one.close() == 0


@pytest.mark.parametrize("kib", [300, 3000])
def test_programs_with_much_of_their_own_for_each_thread_have_a_helper_too(
    place: Place, tmp_path: Path, kib: int
) -> None:
    """Thread-local storage, which the dynamic linker puts on every stack first."""
    large = tmp_path / "large.so"
    source = f"__thread char large[{kib} << 10];"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", large, "-x", "c", "-"], input=source, text=True, check=True)
    with place.program(more={"LD_PRELOAD": f"{objects_in(place.folder)}:{large}"}) as one:
        one.say("launch()")
        place.broker.wait_for(What.WANT, 0)
        place.broker.wait_for(What.IDLE, place.broker.sole())
        one.answer()
