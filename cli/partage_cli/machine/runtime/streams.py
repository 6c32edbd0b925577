"""A container's streams, or those of a command in it, over the runtime's websocket.

The protocol is `v4.channel.k8s.io`: the first byte of a message says which stream. It has no way to end the input
alone. So the input of a container without a terminal is attached without its output, which its log has from the first
byte: closing that connection is the input's end. A command that is run sees no end of its input.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Struct

from partage_cli.machine.runtime.terminal import DetachKeys, Terminal, typed
from partage_plugins.errors import PartageError

if TYPE_CHECKING:
    import aiohttp

_PROTOCOL: Final = "v4.channel.k8s.io"
_STDIN: Final = b"\x00"
_STDOUT: Final = 1
_STDERR: Final = 2
_STATUS: Final = 3
_RESIZE: Final = b"\x04"
_CONNECTED_S: Final = 10.0
_MOST_MESSAGE: Final = 1 << 20
_MOST_WORDS: Final = 400

Write = Callable[[Literal["stdout", "stderr"], bytes], Awaitable[None]]


class StreamFailed(PartageError):
    """The runtime ended the streams, or never began them."""


class StreamEnd(Struct, frozen=True, kw_only=True):
    how: Literal["exited", "detached", "input"]
    """`input`: there is no more of it, and nothing else was asked for."""
    exit_code: int | None = None
    """Of a command; that of a container which was attached to is not told here."""


class _Cause(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Details(Struct, frozen=True):
    causes: tuple[_Cause, ...] = ()


class _ExitStatus(Struct, frozen=True):
    status: str = ""
    message: str = ""
    details: _Details | None = None


async def streamed(
    url: str, *, write: Write, stdin: int | None = None, terminal: Terminal | None = None, output: bool = True
) -> StreamEnd:
    """Joins the streams to descriptors here, until one side ends them.

    With a terminal, that is the input, raw for as long as it lasts, and its keys detach. `output` must be as it was
    asked for at the runtime. Raises `StreamFailed`, and `OSError` of `write`.
    """
    async with _connection(url) as socket:
        with terminal.raw() if terminal is not None else contextlib.nullcontext():
            tasks = [asyncio.create_task(_received(socket, write))]
            if terminal is not None:
                tasks.append(asyncio.create_task(_resized(socket, terminal)))
                tasks.append(asyncio.create_task(_keys(socket, terminal)))
            elif stdin is not None:
                tasks.append(asyncio.create_task(_sent(socket, stdin, is_all=not output)))
            return await _first(tasks)


async def _first(tasks: list[asyncio.Task[StreamEnd]]) -> StreamEnd:
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _received(socket: aiohttp.ClientWebSocketResponse, write: Write) -> StreamEnd:
    async for message in socket:
        data = message.data
        if not isinstance(data, bytes) or len(data) <= 1:
            continue  # the runtime begins with an empty message, on any stream that it writes to
        if data[0] == _STATUS:
            return _end(data[1:])
        if data[0] in (_STDOUT, _STDERR):
            await write("stdout" if data[0] == _STDOUT else "stderr", data[1:])
    raise StreamFailed("the runtime closed the streams before it said how they ended; `partage ps` tells what runs")


async def _sent(socket: aiohttp.ClientWebSocketResponse, stdin: int, *, is_all: bool) -> StreamEnd:
    async with aclosing(typed(stdin)) as pieces:
        async for piece in pieces:
            await _send(socket, _STDIN + piece)
    if not is_all:
        await _for_ever()
    return StreamEnd(how="input")


async def _keys(socket: aiohttp.ClientWebSocketResponse, terminal: Terminal) -> StreamEnd:
    keys = DetachKeys()
    async with aclosing(typed(terminal.descriptor)) as pieces:
        async for piece in pieces:
            passed, is_detached = keys.feed(piece)
            if passed:
                await _send(socket, _STDIN + passed)
            if is_detached:
                break
    return StreamEnd(how="detached")


async def _resized(socket: aiohttp.ClientWebSocketResponse, terminal: Terminal) -> StreamEnd:
    while True:
        size = msgspec.json.encode({"Width": terminal.size.columns, "Height": terminal.size.rows})
        await _send(socket, _RESIZE + size)
        await terminal.resized.wait()
        terminal.resized.clear()


async def _send(socket: aiohttp.ClientWebSocketResponse, data: bytes) -> None:
    try:
        await socket.send_bytes(data)
    except ConnectionError:
        await _for_ever()  # what is received tells how it ended


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


def _end(said: bytes) -> StreamEnd:
    try:
        status = msgspec.json.decode(said, type=_ExitStatus)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise StreamFailed("the runtime ended the streams with something that is no status") from None
    if status.status == "Success":
        return StreamEnd(how="exited", exit_code=0)
    for cause in status.details.causes if status.details else ():
        if cause.reason == "ExitCode" and cause.message.isdecimal():
            return StreamEnd(how="exited", exit_code=int(cause.message))
    raise StreamFailed(f"the runtime could not do it: {' '.join(status.message.split())[:_MOST_WORDS]}")


@asynccontextmanager
async def _connection(url: str) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
    import aiohttp  # noqa: PLC0415  only who streams waits for it

    timeout = aiohttp.ClientTimeout(sock_connect=_CONNECTED_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.ws_connect(url, protocols=(_PROTOCOL,), max_msg_size=_MOST_MESSAGE) as socket,
        ):
            if socket.protocol != _PROTOCOL:
                raise StreamFailed(f"the runtime does not speak {_PROTOCOL}")
            yield socket
    except (aiohttp.ClientError, TimeoutError) as error:
        raise StreamFailed(f"the runtime's streams: {error}") from None
