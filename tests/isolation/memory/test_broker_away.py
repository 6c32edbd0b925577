"""A broker that is down, slow, wrong, or new: memory fails closed, never for long, and works again with the broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Final

import pytest

from isolation.memory.stage import BLOCK, LIMIT, MIB, NOT_INITIALIZED, OUT_OF_MEMORY, Place, Program
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Packet, Result, What
from support.lender import Lender, Row, honest
from support.steered import Said

pytestmark = pytest.mark.slow
BOUND_S = 5.0
"""A process waits this long for a broker that is down."""


def test_without_a_broker_there_is_no_driver(place: Place) -> None:
    place.broker.stop()
    with place.program(device=None) as one:
        began = time.monotonic()
        assert one.error("call('cuInit', 0)") == NOT_INITIALIZED
        assert time.monotonic() - began > BOUND_S - 1
        place.broker.start()
        one.ask("start()")
        one.ask("alloc(1 << 20)")
        assert one.used == one.held == BLOCK


def test_an_allocation_waits_for_a_broker_that_comes_back(one: Program) -> None:
    one.place.broker.stop()
    one.say("a = alloc(64 << 20)")
    assert not one.has_answered(within_s=0.5)
    one.place.broker.start()
    assert one.answer() is None
    assert one.used == one.held == 64 * MIB


def test_allocations_beyond_the_credit_fail_together_when_the_broker_stays_away(one: Program) -> None:
    one.ask("a = alloc(2 << 20)")
    one.place.broker.stop()
    one.ask("b = alloc(2 << 20)")
    began = time.monotonic()
    assert one.ask("race(8, 1, 100 << 20)") == [NOT_INITIALIZED] * 8
    assert time.monotonic() - began < 8 * BOUND_S, "they waited one after the other"
    one.ask("free(a)")
    one.place.broker.start()
    one.ask("alloc(100 << 20)")
    assert one.used == one.held == 102 * MIB


def test_a_process_comes_back_by_itself_under_its_token(one: Program) -> None:
    broker = one.place.broker
    one.ask("a = alloc(20 << 20)")
    row = broker.row(one.pid)
    broker.stop()
    broker.start()
    broker.wait(lambda: row.signals is not None, "the process comes back")
    assert len(broker.rows) == 1
    assert one.used == one.held == 20 * MIB


def test_a_broker_that_has_forgotten_all_is_told_what_is_held(one: Program) -> None:
    broker = one.place.broker
    one.ask("a = alloc(20 << 20)")
    broker.stop()
    broker.forget()
    broker.start()
    broker.wait(lambda: broker.lent() >= 20 * MIB, "the process comes back")
    assert one.used == one.held == 20 * MIB


def test_a_broker_that_comes_back_with_less_room_lends_no_more_than_that(one: Program) -> None:
    """Held memory stays held; nothing more fits until it is freed."""
    broker = one.place.broker
    broker.gives_credit = False
    one.ask("a = alloc(100 << 20)")
    broker.stop()
    broker.forget()
    broker.limits[0] = 50 * MIB
    broker.start()
    assert one.error("alloc(2 << 20)") == OUT_OF_MEMORY
    one.ask("free(a)")
    one.ask("alloc(2 << 20)")
    assert one.used == one.held == 2 * MIB


def test_a_question_without_an_answer_is_asked_again_and_counts_once(one: Program) -> None:
    broker = one.place.broker
    lost: list[Packet] = []

    def loses_one(lender: Lender, row: Row, packet: Packet) -> bytes | None:
        answer = honest(lender, row, packet)
        if packet.what == What.LEND and not lost:
            lost.append(packet)
            return b"cut off"
        return answer

    broker.answering = loses_one
    one.ask("a = alloc(100 << 20)")
    assert lost
    assert one.used == one.held == 100 * MIB
    one.ask(f"b = alloc({LIMIT - 100 * MIB})")


WRONG_ANSWERS: Final[Mapping[str, Callable[[Packet], bytes | None]]] = {
    "none": lambda _: None,
    "another version": lambda packet: b"\7\0" + wire.answer(packet, Result.OK)[2:],
    "another number": lambda packet: wire.answer(packet._replace(number=packet.number + 1), Result.OK),
    "another question": lambda packet: wire.answer(packet._replace(what=What.VIEW), Result.OK),
    "too long": lambda packet: wire.answer(packet, Result.OK) + b"x",
    "refused as wrong": lambda packet: wire.answer(packet, Result.WRONG),
    "lends less than asked": lambda packet: wire.answer(packet, Result.OK),
}


def test_wrong_answers_lend_nothing(place: Place) -> None:
    """One program gets each answer, all at the same time: most answers end in a timeout."""
    with ExitStack() as stack:
        programs = {wrong: stack.enter_context(place.program()) for wrong in WRONG_ANSWERS}
        wrong_for = {program.pid: WRONG_ANSWERS[wrong] for wrong, program in programs.items()}

        def answering(lender: Lender, row: Row, packet: Packet) -> bytes | None:
            return wrong_for[row.pid](packet) if packet.what == What.LEND else honest(lender, row, packet)

        place.broker.answering = answering
        for program in programs.values():
            program.say("alloc(50 << 20)")
        for wrong, program in programs.items():
            with pytest.raises(Said) as said:
                program.answer()
            assert (wrong, said.value.number, program.held) == (wrong, NOT_INITIALIZED, 0)
        place.broker.answering = honest
        for program in programs.values():
            program.ask("alloc(50 << 20)")
            assert program.used == program.held == 50 * MIB


def test_a_program_that_closes_all_descriptors_is_served_on(one: Program) -> None:
    """Files that it opens later under the same numbers stay untouched."""
    one.ask("a = alloc(20 << 20)")
    one.ask("files = os.listdir('/proc/self/fd')")
    one.ask("ours = [int(f) for f in files if int(f) > 100]")
    one.ask("r, w = os.pipe()")
    one.ask("for f in ours: os.close(f)")
    one.ask("for f in ours: os.dup2(w, f)")
    one.ask("b = alloc(100 << 20)")
    one.ask("free(a)")
    assert one.used == one.held == 100 * MIB
    one.ask("import select")
    assert one.ask("select.select([r], [], [], 0)[0]") == []


def test_hints_of_another_version_or_card_are_not_heard(one: Program) -> None:
    broker = one.place.broker
    one.ask("a = alloc(2 << 20)")
    before = len(broker.said(What.RETURN))
    signals = broker.row(one.pid).signals
    assert signals
    signals.send(wire.hint(What.RECALL, 999, 0))
    signals.send(b"\7\0" + wire.hint(What.RECALL, 0, 0)[2:])
    signals.send(b"short")
    assert one.used == one.held
    assert len(broker.said(What.RETURN)) == before
