"""Streams end as the runtime says, and in one line where it says nothing that can be understood."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSMsgType, web

from partage_cli.machine.runtime.streams import StreamEnd, StreamFailed, streamed

EXITED_5 = (
    b'\x03{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"5"}]}}'
)
SUCCESS = b'\x03{"metadata":{},"status":"Success"}'


@asynccontextmanager
async def runtime(*said: bytes, protocol: str = "v4.channel.k8s.io") -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A runtime that says this and closes; where nothing is to be said, it hears one message."""
    heard: list[bytes] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=(protocol,))
        await socket.prepare(request)
        for message in said:
            if message:
                await socket.send_bytes(message)
            elif (came := await socket.receive()).type == WSMsgType.BINARY:
                heard.append(came.data)
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/exec/token", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/exec/token", heard
    finally:
        await runner.cleanup()


async def joined(url: str, stdin: int | None = None, *, output: bool = True) -> tuple[StreamEnd, dict[str, bytes]]:
    written = {"stdout": b"", "stderr": b""}

    async def write(stream: str, data: bytes) -> None:
        written[stream] += data

    return await streamed(url, write=write, stdin=stdin, output=output), written


@pytest.mark.parametrize(("status", "code"), [(EXITED_5, 5), (SUCCESS, 0)])
async def test_outputs_are_told_apart_and_the_exit_code_comes_last(status: bytes, code: int) -> None:
    async with runtime(b"\x01", b"\x03", b"\x01a", b"\x02b", b"\x01c", status) as (url, _):
        end, written = await joined(url)
    assert (end, written) == (StreamEnd(how="exited", exit_code=code), {"stdout": b"ac", "stderr": b"b"})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((), "closed the streams before it said how they ended"),
        ((b"\x01text",), "closed the streams before it said how they ended"),
        ((b"\x03no JSON",), "something that is no status"),
        ((b"\x03" + b"[" * 100_000,), "something that is no status"),
        ((b'\x03{"status":"Failure","message":"not\\nfound"}',), "could not do it: not found"),
        ((b"\x01" + b"x" * (2 << 20),), "closed the streams"),
    ],
)
async def test_what_the_runtime_does_wrong_is_one_line(said: tuple[bytes, ...], words: str) -> None:
    async with runtime(*said) as (url, _):
        with pytest.raises(StreamFailed, match=words) as failed:
            await joined(url)
    assert "\n" not in str(failed.value)


async def test_a_runtime_that_is_not_there_or_speaks_otherwise_is_one_line() -> None:
    async with runtime(protocol="v9") as (url, _):
        with pytest.raises(StreamFailed, match=r"does not speak v4\.channel"):
            await joined(url)
    with pytest.raises(StreamFailed, match="the runtime's streams"):
        await joined(url)


@pytest.fixture
def pipe() -> Callable[[bytes], int]:
    def reading(data: bytes) -> int:
        reader, writer = os.pipe()
        os.write(writer, data)
        os.close(writer)
        return reader

    return reading


async def test_the_end_of_input_alone_ends_the_connection(pipe: Callable[[bytes], int]) -> None:
    stdin = pipe(b"abc")
    async with runtime(b"", b"") as (url, heard):
        end, _ = await joined(url, stdin, output=False)
    os.close(stdin)
    assert (end, heard) == (StreamEnd(how="input"), [b"\x00abc"])


async def test_a_command_is_waited_for_after_the_end_of_its_input(pipe: Callable[[bytes], int]) -> None:
    stdin = pipe(b"abc")
    async with runtime(b"", b"\x01late", SUCCESS) as (url, heard):
        end, written = await joined(url, stdin)
    os.close(stdin)
    assert (end.how, written["stdout"], heard) == ("exited", b"late", [b"\x00abc"])


async def test_an_output_that_takes_no_more_ends_it() -> None:
    async def write(_: str, __: bytes) -> None:
        raise BrokenPipeError

    async with runtime(b"\x01a", b"") as (url, _):
        with pytest.raises(BrokenPipeError):
            await streamed(url, write=write)
