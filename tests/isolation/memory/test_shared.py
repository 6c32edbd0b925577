"""Memory that several processes hold: its reports to the broker, by each way to share it, and its credit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from isolation.memory.stage import BLOCK, CHUNK, LIMIT, MIB, OUT_OF_MEMORY, Place, Program
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Packet, Result, What
from simgpu.memory.programs import received
from support.lender import Lender, Row, honest

pytestmark = pytest.mark.slow


class Way(NamedTuple):
    """Lines for the program that makes a piece, and for the one that opens it."""

    make: str
    export: str
    opening: str
    closing: str
    freeing: str
    size: int


IPC = Way("a = alloc(3 << 20)", "ipc_handle(a)", "ipc_open({!r})", "ipc_close(b)", "free(a)", 2 * BLOCK)
VIRTUAL = Way(
    "a = create(6 << 20, shared=True)", "export_memory(a)", "import_memory({})", "release(b)", "release(a)", 6 * MIB
)
INSIDE = IPC._replace(export="ipc_handle(a + 4096)")
"""The driver accepts any address inside the memory."""
WAYS = pytest.mark.parametrize("way", [IPC, VIRTUAL], ids=["ipc", "virtual"])


@contextmanager
def importing(one: Program, export: str, opening: str) -> Generator[Program]:
    """Another program that has opened, as `b`, the memory that the first one exports."""
    handle = one.ask(export)
    if isinstance(handle, int):
        with received(one, handle) as file, another(one.place, opening.format(file), (file,)) as two:
            yield two
    else:
        with another(one.place, opening.format(handle)) as two:
            yield two


@contextmanager
def another(place: Place, opening: str, files: Sequence[int] = ()) -> Generator[Program]:
    with place.program(pass_fds=files) as two:
        two.ask(f"b = {opening}")
        yield two


def lent(one: Program) -> int:
    """The library's lent amount, which equals the broker's."""
    amounts = one.place.broker.amounts(one.pid)
    assert amounts.lent == one.place.broker.row(one.pid).lent[0]
    return amounts.lent


@WAYS
def test_what_another_has_open_is_no_credit_when_it_is_freed(one: Program, way: Way) -> None:
    one.ask(way.make)
    before = lent(one)
    assert one.used == way.size
    with importing(one, way.export, way.opening) as two:
        assert two.used == 0
        assert {pid for pid, _ in one.place.broker.opened} == {two.pid}
        one.ask(way.freeing)
        assert one.used == 0
        assert lent(one) == before - way.size
        two.ask(way.closing)
        assert not one.place.broker.opened


@pytest.mark.parametrize("way", [IPC, INSIDE, VIRTUAL], ids=["ipc", "inside", "virtual"])
def test_what_nobody_has_open_any_more_is_credit_when_it_is_freed(one: Program, way: Way) -> None:
    one.place.broker.gives_credit = False
    one.ask(way.make)
    with importing(one, way.export, way.opening) as two:
        two.ask(way.closing)
        one.ask(way.freeing)
        assert not one.place.broker.opened
        assert one.used == 0
        assert lent(one) == 0
        assert [packet.shared.size for packet in one.place.broker.said(What.LEAVE)] == [way.size]


def test_what_is_opened_twice_is_open_until_it_is_closed_twice(one: Program) -> None:
    one.ask("a = alloc(2 << 20)")
    handle = one.ask("ipc_handle(a)")
    with one.place.program() as two:
        two.ask(f"b = ipc_open({handle!r})")
        two.ask(f"ipc_open({handle!r})")
        two.ask("ipc_close(b)")
        assert one.place.broker.opened
        two.ask("ipc_close(b)")
        assert not one.place.broker.opened


def test_what_the_driver_does_not_open_is_not_open(one: Program) -> None:
    one.ask("a = alloc(2 << 20)")
    handle = one.ask("ipc_handle(a)")
    one.ask("free(a)")
    with one.place.program() as two:
        assert two.error(f"ipc_open({handle!r})") != 0
        assert one.place.broker.said(What.OPEN)
        assert not one.place.broker.opened


def test_what_is_mapped_stays_open_without_its_handle(one: Program) -> None:
    one.ask("a = create(2 << 20, shared=True)")
    with importing(one, "export_memory(a)", "import_memory({})") as two:
        two.ask("x = opened(b, 2 << 20)")
        two.ask("release(b)")
        assert one.place.broker.opened
        two.ask("unmap(x, 2 << 20)")
        assert not one.place.broker.opened


def test_memory_of_a_pool_that_another_has_open_is_no_credit_when_the_pool_gives_it_back(one: Program) -> None:
    one.ask("p = make_pool(shared=True)")
    one.ask("a = alloc_from(p, 1 << 20)")
    data = one.ask("export_pointer(a)")
    with importing(one, "export_pool(p)", "import_pool({})") as two:
        two.ask(f"c = import_pointer(b, {data!r})")
        assert one.place.broker.opened
        before = lent(one)
        one.ask("free(a)")
        one.ask("call('cuMemPoolTrimTo', p, 0)")
        assert one.used == 0
        assert lent(one) == before - CHUNK
        two.ask("free(c)")
        assert not one.place.broker.opened


@pytest.mark.parametrize("export", ["ipc_handle(a)", "export_memory(b)"])
def test_without_room_for_another_name_nothing_is_handed_out(one: Program, export: str) -> None:
    def is_full(broker: Lender, row: Row, packet: Packet) -> bytes | None:
        return wire.answer(packet, Result.FULL) if packet.what == What.EXPORT else honest(broker, row, packet)

    one.place.broker.answering = is_full
    one.ask("a = alloc(2 << 20)")
    one.ask("b = create(2 << 20, shared=True)")
    before = one.ask("sorted(os.listdir('/proc/self/fd'))")
    assert one.error(export) == OUT_OF_MEMORY
    assert one.ask("sorted(os.listdir('/proc/self/fd'))") == before


def test_what_nobody_of_the_container_made_must_fit(one: Program) -> None:
    def knows_nothing(broker: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what != What.OPEN:
            return honest(broker, row, packet)
        result = Result.NO if packet.shared.size else Result.OK
        return wire.answer(packet, result, wire.shared_body(packet.shared))

    one.ask("a = alloc(3 << 20)")
    handle = one.ask("ipc_handle(a)")
    one.place.broker.answering = knows_nothing
    with one.place.program() as two:
        assert two.error(f"ipc_open({handle!r})") == OUT_OF_MEMORY
        assert [packet.shared.size for packet in one.place.broker.said(What.OPEN)] == [0, 2 * BLOCK]
        one.ask("free(a)")
    assert one.place.node.status()[0].used_bytes < LIMIT
    assert one.used == one.held == 0
