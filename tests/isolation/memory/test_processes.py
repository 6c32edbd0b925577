"""Children, threads, and stopped processes: no request that fits is refused, and nothing stays charged."""

from __future__ import annotations

import signal
import time

import pytest

from isolation.memory.stage import BLOCK, MIB, NOT_INITIALIZED, Place, Program
from partage_isolation.wire.packets import Packet, What
from support.lender import Lender, Row, honest

pytestmark = pytest.mark.slow


def test_a_child_is_refused_as_the_driver_refuses_it_and_the_parent_goes_on(one: Program) -> None:
    one.ask("a = alloc(5 << 20)")
    assert one.ask("forked()") == NOT_INITIALIZED
    one.ask("b = alloc(50 << 20)")
    assert one.used == one.held == 56 * MIB


def test_a_child_that_ends_leaves_the_parents_session_alone(one: Program) -> None:
    broker = one.place.broker
    one.ask("a = alloc(5 << 20)")
    heard = len(broker.heard)
    one.ask("os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)")
    one.ask("(lambda p: os.waitpid(p, 0) if p else os._exit(0))(os.fork())")
    assert len(broker.heard) == heard
    assert one.used == one.held


def test_a_child_of_a_program_that_has_not_begun_has_a_session_of_its_own(place: Place) -> None:
    with place.program(device=None) as one:
        one.ask("r, w = os.pipe()")
        one.ask(
            'exec(\'def child():\\n p = os.fork()\\n if p: return p\\n start(); alloc(3 << 20); os.write(w, b"x")\\n'
            " sys.stdin.close(); os.read(0, 1); os._exit(0)', globals())"
        )
        one.ask("start()")
        assert len(place.broker.rows) == 1


def test_forks_in_the_middle_of_allocations_hang_nobody(one: Program) -> None:
    one.ask("c = told('cuCtxGetCurrent')")
    one.ask(
        "exec('def busy():\\n call(\"cuCtxSetCurrent\", c)\\n for _ in range(300): free(alloc(100 << 20))', globals())"
    )
    one.ask("t = threading.Thread(target=busy)")
    one.ask("t.start()")
    assert one.ask("[forked() for _ in range(30)]") == [NOT_INITIALIZED] * 30
    one.ask("t.join()")
    assert one.used == one.held == 0


def test_a_program_that_was_started_by_another_has_its_own_token(place: Place) -> None:
    with place.program() as one:
        one.ask("a = alloc(1)")
        with place.program() as other:
            other.ask("a = alloc(1)")
            assert len(place.broker.rows) == 2
            assert one.used == other.used == BLOCK


# ---- Threads ---------------------------------------------------------------------------------------------------------


def test_a_broker_that_is_slow_is_not_one_that_is_away(one: Program) -> None:
    """The last of them has its turn only after the time that a call waits for a silent broker."""

    def slow(lender: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.LEND:
            time.sleep(0.5)
        return honest(lender, row, packet)

    one.place.broker.gives_credit = False
    one.place.broker.answering = slow
    assert one.ask("race(13, 1, keeps=True)") == []
    one.place.broker.answering = honest
    assert one.used == one.held == 26 * MIB


@pytest.mark.parametrize(
    ("line", "lost", "answer", "mib"),
    [
        pytest.param("race(8, 1)", False, [], 0, id="one thread has asked and the others are behind it"),
        pytest.param("a = alloc(2 << 20)", True, None, 2, id="the call failed meanwhile, and is tried once more"),
    ],
)
def test_a_process_that_stood_still_asks_on(one: Program, line: str, lost: bool, answer: object, mib: int) -> None:  # noqa: FBT001
    """For longer than a call waits, but not because the broker was down."""

    def stops_it(lender: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.LEND and not stopped:
            stopped.append(packet)
            one.send(signal.SIGSTOP)
            if lost:
                return b"cut off"
        return honest(lender, row, packet)

    stopped: list[Packet] = []
    one.place.broker.gives_credit = False
    one.place.broker.answering = stops_it
    one.say(line)
    assert not one.has_answered(within_s=6)
    one.send(signal.SIGCONT)
    assert one.answer() == answer
    assert one.used == one.held == mib * MIB
