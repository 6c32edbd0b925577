"""A person's terminal is raw only while a container has it; two keys let go of it."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from collections.abc import Generator

import pytest

from partage_cli.machine.runtime.terminal import DetachKeys, Terminal, typed, written


@pytest.mark.parametrize(
    ("typed", "passed", "is_detached"),
    [
        ([b"abc"], b"abc", False),
        ([b"ab\x10\x11cd"], b"ab", True),
        ([b"a\x10", b"\x11"], b"a", True),
        ([b"\x10", b"x"], b"\x10x", False),
        ([b"\x10", b"\x10\x11"], b"\x10", True),
        ([b"\x11\x10"], b"\x11", False),
    ],
)
def test_two_keys_detach_and_all_else_is_passed_on(typed: list[bytes], passed: bytes, is_detached: bool) -> None:  # noqa: FBT001
    keys = DetachKeys()
    answers = [keys.feed(piece) for piece in typed]
    assert b"".join(out for out, _ in answers) == passed
    assert answers[-1][1] == is_detached


@pytest.fixture
def pair() -> Generator[tuple[int, int]]:
    ends = os.openpty()
    yield ends
    for end in ends:
        os.close(end)


def is_raw(descriptor: int) -> bool:
    return not termios.tcgetattr(descriptor)[3] & termios.ICANON


async def test_the_terminal_is_as_before_when_its_task_ends_with_an_error(pair: tuple[int, int]) -> None:
    def fail() -> None:
        with Terminal(pair[1]).raw():
            assert is_raw(pair[1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not is_raw(pair[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_that_ends_the_program_leaves_the_terminal_as_before(
    pair: tuple[int, int], number: signal.Signals
) -> None:
    begun = asyncio.Event()

    async def held() -> None:
        with Terminal(pair[1]).raw():
            begun.set()
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(held())
    await begun.wait()
    signal.raise_signal(number)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_raw(pair[1])


async def test_a_window_that_changes_its_size_is_heard_of(pair: tuple[int, int]) -> None:
    terminal = Terminal(pair[1])
    with terminal.raw():
        signal.raise_signal(signal.SIGWINCH)
        await terminal.resized.wait()
    termios.tcsetwinsize(pair[1], (33, 99))
    assert terminal.size == (99, 33)


async def test_input_comes_until_its_end_from_pipes_and_files_and_nothing() -> None:
    reading, writing = os.pipe()
    pieces = typed(reading)
    os.write(writing, b"a")
    assert await anext(pieces) == b"a"
    await written(writing, b"b")
    os.close(writing)
    assert [piece async for piece in pieces] == [b"b"]
    os.close(reading)
    with open(__file__, "rb") as file, open(os.devnull, "rb") as nothing:  # noqa: ASYNC230, PTH123
        assert b"".join([piece async for piece in typed(file.fileno())]).startswith(b'"""A person')
        assert [piece async for piece in typed(nothing.fileno())] == []


async def test_a_terminal_that_is_hung_up_is_the_end_of_input() -> None:
    other, own = os.openpty()
    os.close(other)
    assert [piece async for piece in typed(own)] == []
    os.close(own)
