"""Processes that fork, execute others, stop, and end."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from isolation.gates.stage import A_WHILE_S, NOT_INITIALIZED, Place, Program
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow


def test_a_child_joins_for_itself(place: Place) -> None:
    """One that was forked before its parent had begun with the card."""
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
        broker.wait_for(What.DRAINED, broker.lease(seconds=0.02))
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
