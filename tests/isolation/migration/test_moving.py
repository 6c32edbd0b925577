"""A container's memory leaves the card for another's, and returns: the program notices only the delay."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from isolation.migration.stage import CONTEXT, MIB, crowded, movable, moving, program
from support.extent import is_all
from support.isolated import Contained, Isolated, until
from support.steered import Steered

pytestmark = pytest.mark.slow

PART = 16 * MIB
"""Bytes of each allocation, which the simulated card stores."""
MANY = 30
OUT_OF_MEMORY, NOT_SUPPORTED = 2, 801


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    with crowded() as made:
        yield made


def fill(one: Steered, seed: int, many: int = MANY) -> None:
    """Fill each allocation with distinct bytes."""
    one.ask(f"xs = [alloc({PART}) for _ in range({many})]")
    one.ask(f"[write(x, bytes([{seed} + n]) * {PART}) for n, x in enumerate(xs)]")


def is_whole(one: Steered, seed: int) -> bool:
    """All bytes of each allocation are intact."""
    return bool(one.ask(f"all(same(x, bytes([{seed} + n]) * {PART}) for n, x in enumerate(xs))"))


def out(container: Contained) -> int:
    return moving(container).moved_bytes


def test_two_that_do_not_fit_have_their_bytes_whenever_they_look(place: Isolated) -> None:
    """Both together never have more than the card."""
    first, second = movable(place, 700 * MIB), movable(place, 700 * MIB)
    with program(first) as one, program(second) as two:
        addresses = one.ask(f"xs = [alloc({PART}) for _ in range(2)]; [free(x) for x in xs]; None")
        assert addresses is None
        fill(one, 0)
        fill(two, 100)
        assert out(first)
        for _ in range(3 if is_all() else 2):
            assert is_whole(one, 0)
            assert is_whole(two, 100)
        assert moving(first).times >= 2
        assert moving(second).times >= 2


def test_what_a_program_sees_of_its_memory_is_as_before(place: Isolated) -> None:
    container, other = movable(place, 700 * MIB), movable(place, 900 * MIB)
    with program(container) as one, program(other) as two:
        one.ask(f"a = alloc({PART + 5}); xs = [alloc({PART}) for _ in range(9)]")
        assert one.ask("span(a + 7)") == [one.ask("a"), PART + 5]
        assert one.ask("attribute(a + 7, 11)") == one.ask("a")
        assert one.ask("attribute(a, 12)") == PART + 5
        assert one.ask("attribute(a, 1) == told('cuCtxGetCurrent')")
        before = one.ask("info()")
        two.ask(f"xs = [alloc({PART}) for _ in range(52)]")
        until(lambda: out(container) > 0)
        assert one.ask("info()") == before
        assert one.error("ipc_handle(a)") == NOT_SUPPORTED
        one.ask("free(a)")
        assert one.error("free(a)") == 1


def test_small_memory_stays_and_all_of_it_counts(place: Isolated) -> None:
    container = movable(place, 300 * MIB)
    with program(container) as one:
        one.ask("xs = [alloc(4096) for _ in range(100)]")
        one.ask(f"y = alloc({PART})")
        until(lambda: moving(container).resident_bytes == PART)
        assert one.error(f"alloc({300 * MIB - CONTEXT - PART})") == OUT_OF_MEMORY


def test_the_limit_holds_whether_memory_is_out_or_not(place: Isolated) -> None:
    first, second = movable(place, 600 * MIB), movable(place, 700 * MIB)
    with program(first) as one, program(second) as two:
        fill(one, 0)
        fill(two, 50, 38)
        until(lambda: out(first) > 0)
        assert one.error(f"alloc({100 * MIB})") == OUT_OF_MEMORY
        one.ask("free(xs.pop())")
        one.ask(f"xs.append(alloc({PART}))")


def test_one_that_does_not_move_is_never_asked_to(place: Isolated) -> None:
    fixed, first, second = movable(place, 300 * MIB, moves=False), movable(place, 500 * MIB), movable(place, 500 * MIB)
    with program(fixed) as stays, program(first) as one, program(second) as two:
        fill(stays, 200, 10)
        fill(one, 0, 25)
        fill(two, 50, 25)
        assert is_whole(stays, 200)
        assert is_whole(one, 0)
        assert is_whole(two, 50)
        assert fixed.told().cards[0].moving is None
        assert place.held(stays.pid) == CONTEXT + 10 * PART


def test_room_of_a_program_that_was_killed_is_there_for_others(place: Isolated) -> None:
    first, second = movable(place, 700 * MIB), movable(place, 700 * MIB)
    with program(first) as one, program(second) as two:
        fill(one, 0)
        fill(two, 100)
        os.kill(two.pid, signal.SIGKILL)
        assert is_whole(one, 0)
        until(lambda: out(first) == 0)


def test_a_broker_that_is_killed_finds_each_where_it_is(place: Isolated) -> None:
    first, second = movable(place, 700 * MIB), movable(place, 700 * MIB)
    with program(first) as one, program(second) as two:
        fill(one, 0)
        fill(two, 100)
        place.broker.restart()
        assert is_whole(one, 0)
        assert is_whole(two, 100)


def test_a_program_that_ends_while_it_is_out_ends_well(place: Isolated) -> None:
    first, second = movable(place, 700 * MIB), movable(place, 700 * MIB)
    with program(second) as two:
        with program(first) as one:
            fill(one, 0)
            fill(two, 100)
            until(lambda: out(first) > 0)
            assert one.close() == 0
        assert is_whole(two, 100)
