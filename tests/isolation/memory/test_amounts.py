"""Reports to the broker besides amounts: contexts, loaded code, memory that others can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from isolation.memory.stage import LIMIT, MIB, OUT_OF_MEMORY, Place, Program, metered
from partage_isolation.ledger.account import Amounts
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Packet, Result, What
from support.lender import Lender, Row, honest

pytestmark = pytest.mark.slow


def kinds(place: Place) -> list[What]:
    """Messages about contexts, in order."""
    return [
        What(packet.what)
        for _, packet in place.broker.heard
        if packet.what == What.CONTEXT or packet.flags & (Flag.CONTEXT_MADE | Flag.CONTEXT_FAILED)
    ]


def told(place: Place, *expected: What) -> None:
    """Wait until exactly these messages about contexts were sent."""
    place.broker.wait(lambda: kinds(place) == list(expected), f"{expected} is said, and not {kinds(place)}")


def test_room_for_a_context_is_asked_for_before_and_its_making_told_after(place: Place) -> None:
    with place.program() as one:
        told(place, What.CONTEXT, What.AMOUNTS)
        one.ask("call('cuDevicePrimaryCtxRetain', bytes(8), 0)")
        told(place, What.CONTEXT, What.AMOUNTS)
        one.ask("c = told('cuCtxCreate_v2', 0, 0)")
        one.ask("d = told('cuCtxCreate_v4', None, 0, 0)")
        told(place, *[What.CONTEXT, What.AMOUNTS] * 3)


def test_a_context_that_has_no_room_is_not_made(place: Place) -> None:
    def refuses(broker: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.CONTEXT:
            return wire.answer(packet, Result.NO, wire.amounts_body(Amounts(0, 0)))
        return honest(broker, row, packet)

    place.broker.answering = refuses
    with place.program(device=None) as one:
        assert one.error("start()") == OUT_OF_MEMORY
        assert one.error("told('cuCtxCreate_v2', 0, 0)") == OUT_OF_MEMORY
        assert place.node.status()[0].used_bytes == 0
        assert set(kinds(place)) == {What.CONTEXT}
        place.broker.answering = honest
        one.ask("start()")


def test_a_context_that_the_driver_refused_is_told(place: Place) -> None:
    with place.program(device=None) as one:
        one.ask("call('cuInit', 0)")
        assert one.error("told('cuCtxCreate_v2', 0xffff, 0)") == 1
        told(place, What.CONTEXT, What.AMOUNTS)
        assert [packet.flags for packet in place.broker.said(What.AMOUNTS)] == [Flag.CONTEXT_FAILED]


def test_a_green_context_that_is_destroyed_leaves_nothing_charged(place: Place) -> None:
    """The primary context existed only for it, and is destroyed with it."""
    with place.program(device=None) as one:
        one.ask("call('cuInit', 0)")
        one.ask("g = told('cuGreenCtxCreate', 1, 0, 1)")
        one.ask("call('cuCtxSetCurrent', told('cuCtxFromGreenCtx', g))")
        one.ask("a = alloc(7 << 20)")
        assert one.used == one.held > 0
        one.ask("call('cuGreenCtxDestroy', g)")
        assert place.node.status()[0].used_bytes == 0
        assert one.used == 0


@pytest.mark.parametrize("line", ["told('cuModuleLoadData', b'anything')", "call('cuCtxSetLimit', 2, 1 << 20)"])
def test_what_only_the_card_shows_is_a_hint_to_look(one: Program, line: str) -> None:
    told(one.place, What.CONTEXT, What.AMOUNTS)
    before = len(one.place.broker.said(What.AMOUNTS))
    one.ask(line)
    broker = one.place.broker
    broker.wait(lambda: len(broker.said(What.AMOUNTS)) == before + 1, "the broker is told")


def test_two_cards_have_an_account_each(tmp_path: Path) -> None:
    with metered(tmp_path, limits=(LIMIT, LIMIT // 2)) as place, place.program() as one:
        one.ask("a = alloc(10 << 20)")
        one.ask("start(1)")
        one.ask("b = alloc(20 << 20)")
        one.ask("h = create(4 << 20, device=0)")
        one.ask("c = alloc_from(make_pool(device=1), 1 << 20)")
        assert one.ask("info()")[1] == LIMIT // 2
        assert place.broker.amounts(one.pid, 0).used == place.held(one.pid, 0) == 14 * MIB
        assert place.broker.amounts(one.pid, 1).used == place.held(one.pid, 1) == 52 * MIB
        assert one.error(f"alloc({LIMIT // 2})") == OUT_OF_MEMORY
        one.ask("free(a)")
        one.ask("reset(1)")
        assert place.broker.amounts(one.pid, 0).used == place.held(one.pid, 0) == 4 * MIB
        assert place.broker.amounts(one.pid, 1).used == 0
