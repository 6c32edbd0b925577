"""Streams end as the runtime says, and in one line where it says nothing that can be understood."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import pytest

from partage_cli.machine.runtime.streams import Asked, StreamEnd, StreamFailed, streamed
from support.spdy_runtime import Peer, Serve, spdy_runtime

EXITED_5 = b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"5"}]}}'
SUCCESS = b'{"metadata":{},"status":"Success"}'
OUTPUTS: Final = Asked(stdin=False, tty=False)
ALL: Final = Asked(stdin=True, tty=False)


def saying(*said: tuple[str, bytes]) -> Serve:
    """Opens the three streams, says this and closes."""

    async def serve(peer: Peer) -> None:
        await peer.opened(3)
        for name, data in said:
            peer.send(name, data)

    return serve


async def joined(url: str, asked: Asked = OUTPUTS, stdin: int | None = None) -> tuple[StreamEnd, dict[str, bytes]]:
    written = {"stdout": b"", "stderr": b""}

    async def write(stream: str, data: bytes) -> None:
        written[stream] += data

    return await streamed(url, asked, write=write, stdin=stdin), written


@pytest.mark.parametrize(("status", "code"), [(EXITED_5, 5), (SUCCESS, 0)])
async def test_outputs_are_told_apart_and_the_exit_code_comes_last(status: bytes, code: int) -> None:
    async def serve(peer: Peer) -> None:
        await peer.opened(3)
        for name, data in (
            ("stdout", b""),
            ("stdout", b"a"),
            ("stderr", b"b"),
            ("stdout", b"c"),
            ("error", status[:9]),
        ):
            peer.send(name, data)
        peer.end(status[9:])

    with spdy_runtime(serve) as url:
        end, written = await joined(url)
    assert (end, written) == (StreamEnd(how="exited", exit_code=code), {"stdout": b"ac", "stderr": b"b"})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((), "closed the streams before it said how they ended"),
        ((("stdout", b"text"),), "closed the streams before it said how they ended"),
        ((("error", b"no JSON"),), "something that is no status"),
        ((("error", b"[" * 100_000),), "something that is no status"),
        ((("error", b'{"status":"Failure","message":"not\\nfound"}'),), "could not do it: not found"),
        ((("stdout", b"x" * (2 << 20)),), "a frame that is too large"),
    ],
)
async def test_what_the_runtime_does_wrong_is_one_line(said: tuple[tuple[str, bytes], ...], words: str) -> None:
    with spdy_runtime(saying(*said)) as url, pytest.raises(StreamFailed, match=words) as failed:
        await joined(url)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", r"404 Not Found"),
        (b"HTTP/1.1 101 So\r\nX-Stream-Protocol-Version: v9\r\n\r\n", r"does not speak v4\.channel"),
        (b"x" * (1 << 20), "the runtime's streams"),
        (b"", "the runtime's streams"),
    ],
)
async def test_a_runtime_that_speaks_otherwise_is_one_line(answer: bytes, words: str) -> None:
    with spdy_runtime(saying(), answer) as url, pytest.raises(StreamFailed, match=words) as failed:
        await joined(url)
    assert "\n" not in str(failed.value)
    with pytest.raises(StreamFailed, match="the runtime's streams"):
        await joined(url)  # it is gone


@pytest.fixture
def pipe() -> Callable[[bytes], int]:
    def reading(data: bytes) -> int:
        reader, writer = os.pipe()
        os.write(writer, data)
        os.close(writer)
        return reader

    return reading


async def test_a_command_has_its_input_to_its_end_and_is_waited_for(pipe: Callable[[bytes], int]) -> None:
    heard: list[tuple[str, bytes | None]] = []

    async def serve(peer: Peer) -> None:
        await peer.opened(4)
        async for piece in peer.received():
            heard.append(piece)
            if piece[1] is None:
                break
        peer.send("stdout", b"late")
        peer.end(SUCCESS)

    stdin = pipe(b"abc")
    with spdy_runtime(serve) as url:
        end, written = await joined(url, ALL, stdin)
    os.close(stdin)
    assert (end.how, written["stdout"], heard) == ("exited", b"late", [("stdin", b"abc"), ("stdin", None)])


async def test_nothing_is_sent_before_all_streams_are_taken(pipe: Callable[[bytes], int]) -> None:
    """Runtimes drop it."""
    heard: list[tuple[str, bytes | None]] = []

    async def serve(peer: Peer) -> None:
        await peer.opened(4, replies=False)
        assert await peer.is_silent()
        peer.reply()
        async for piece in peer.received():
            heard.append(piece)
            if piece[1] is None:
                break
        peer.end(SUCCESS)

    stdin = pipe(b"abc")
    with spdy_runtime(serve) as url:
        await joined(url, ALL, stdin)
    os.close(stdin)
    assert heard == [("stdin", b"abc"), ("stdin", None)]


async def test_streams_that_are_not_taken_are_one_line() -> None:
    async def serve(peer: Peer) -> None:
        await peer.opened(3, replies=False)
        peer.end(SUCCESS)

    with spdy_runtime(serve) as url, pytest.raises(StreamFailed, match="did not open all streams"):
        await joined(url)


async def test_an_output_that_takes_no_more_ends_it() -> None:
    async def write(_: str, __: bytes) -> None:
        raise BrokenPipeError

    with spdy_runtime(saying(("stdout", b"a"))) as url, pytest.raises(BrokenPipeError):
        await streamed(url, OUTPUTS, write=write)
