"""A container's streams, or those of a command in it, over one connection to the runtime's own server.

The input of a container without a terminal is attached without its output, which its log has from the first byte.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from partage_cli.machine.runtime.spdy import Data, FrameTooLarge, GoAway, Ping, Receiver, Reply, Reset, Sender
from partage_cli.machine.runtime.terminal import DetachKeys, Terminal, typed
from partage_plugins.errors import PartageError

_PROTOCOL: Final = "v4.channel.k8s.io"
_CONNECTED_S: Final = 30.0
_MOST_STATUS: Final = 64 << 10
_MOST_WORDS: Final = 400
_BLOCK: Final = 64 << 10

Output = Literal["stdout", "stderr"]
Name = Literal["error", "stdin", "stdout", "stderr", "resize"]
Write = Callable[[Output, bytes], Awaitable[None]]


class StreamFailed(PartageError):
    """The runtime ended the streams, or never began them."""


class StreamEnd(Struct, frozen=True, kw_only=True):
    how: Literal["exited", "detached"]
    exit_code: int | None = None
    """Of a command; that of a container which was attached to is not told here."""


class Asked(Struct, frozen=True, kw_only=True):
    """Which streams the runtime was asked for: no others can be opened, and it waits for all of them."""

    stdin: bool
    tty: bool
    output: bool = True

    @property
    def names(self) -> tuple[Name, ...]:
        asked: dict[Name, bool] = {
            "error": True,
            "stdin": self.stdin,
            "stdout": self.output,
            "stderr": self.output and not self.tty,
            "resize": self.tty,
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)


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
    url: str, asked: Asked, *, write: Write, stdin: int | None = None, terminal: Terminal | None = None
) -> StreamEnd:
    """Joins the streams to descriptors here, until the runtime ends them, or a person lets go of a terminal.

    With a terminal, that is the input, raw for as long as it lasts, and its keys detach. Raises `StreamFailed`, and
    `OSError` of `write`.
    """
    async with _connection(url, asked) as streams:
        with terminal.raw() if terminal is not None else contextlib.nullcontext():
            work: list[Coroutine[Any, Any, StreamEnd]] = [_received(streams, write)]
            if terminal is not None:
                work += [_resized(streams, terminal), _keys(streams, terminal)]
            elif stdin is not None:
                work.append(_sent(streams, stdin))
            return await _first([asyncio.create_task(each) for each in work])


async def _first(tasks: list[asyncio.Task[StreamEnd]]) -> StreamEnd:
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Streams:
    """A connection with streams on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Asked) -> None:
        self._reader, self._writer = reader, writer
        self._opened: dict[Name, tuple[int, bytes]] = {}
        sender = Sender()
        for name in asked.names:
            self._opened[name] = sender.opening({"streamtype": name})
        self.names: dict[int, Name] = {number: name for name, (number, _) in self._opened.items()}
        self.frames = self._read()

    async def open(self) -> None:
        """Returns when the peer has taken all of them: what it is sent before is lost."""
        for _, opening in self._opened.values():
            self._writer.write(opening)
        left = set(self.names)
        async for frame in self.frames:
            if not isinstance(frame, Reply):
                break
            left.discard(frame.stream)
            if not left:
                return
        raise StreamFailed("the runtime did not open all streams")

    async def send(self, name: Name, data: bytes, *, is_last: bool = False) -> None:
        try:
            self._writer.write(Sender.data(self._opened[name][0], data, is_last=is_last))
            await self._writer.drain()
        except ConnectionError:
            await _for_ever()  # what is received tells how it ended

    async def _read(self) -> AsyncGenerator[Data | Reply | Reset | GoAway]:
        receiver = Receiver()
        with contextlib.suppress(ConnectionError):
            while data := await self._reader.read(_BLOCK):
                for frame in receiver.feed(data):
                    if isinstance(frame, Ping):
                        self._writer.write(frame.answer)
                    else:
                        yield frame


async def _received(streams: _Streams, write: Write) -> StreamEnd:
    status = b""
    async for frame in streams.frames:
        if isinstance(frame, GoAway):
            break
        name = streams.names.get(frame.stream)
        if isinstance(frame, Data) and name in ("stdout", "stderr") and frame.data:
            await write(name, frame.data)
        if name != "error" or isinstance(frame, Reply):
            continue
        if isinstance(frame, Reset):
            break
        status = (status + frame.data)[:_MOST_STATUS]
        if frame.is_last:
            break
    if not status:
        raise StreamFailed("the runtime closed the streams before it said how they ended; `partage ps` tells what runs")
    return _end(status)


async def _sent(streams: _Streams, stdin: int) -> StreamEnd:
    async with aclosing(typed(stdin)) as pieces:
        async for piece in pieces:
            await streams.send("stdin", piece)
    await streams.send("stdin", b"", is_last=True)
    return await _for_ever()


async def _keys(streams: _Streams, terminal: Terminal) -> StreamEnd:
    keys = DetachKeys()
    async with aclosing(typed(terminal.descriptor)) as pieces:
        async for piece in pieces:
            passed, is_detached = keys.feed(piece)
            if passed:
                await streams.send("stdin", passed)
            if is_detached:
                break
    return StreamEnd(how="detached")


async def _resized(streams: _Streams, terminal: Terminal) -> StreamEnd:
    while True:
        size = msgspec.json.encode({"Width": terminal.size.columns, "Height": terminal.size.rows})
        await streams.send("resize", size)
        await terminal.resized.wait()
        terminal.resized.clear()


async def _for_ever() -> StreamEnd:
    end: asyncio.Future[StreamEnd] = asyncio.get_running_loop().create_future()
    return await end


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
async def _connection(url: str, asked: Asked) -> AsyncGenerator[_Streams]:
    streams, writer = await _opened(url, asked)
    try:
        yield streams
    except FrameTooLarge as error:
        raise StreamFailed(f"the runtime's streams: {error}") from None
    finally:
        writer.close()


async def _opened(url: str, asked: Asked) -> tuple[_Streams, asyncio.StreamWriter]:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECTED_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                await _upgraded(reader, writer, path=parts.path, host=parts.netloc)
                streams = _Streams(reader, writer, asked)
                await streams.open()
            except BaseException:
                writer.close()
                raise
    except TimeoutError:
        raise StreamFailed("the runtime's streams: no answer") from None
    except (OSError, ValueError, EOFError, FrameTooLarge, asyncio.LimitOverrunError) as error:
        raise StreamFailed(f"the runtime's streams: {error}") from None
    return streams, writer


async def _upgraded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, path: str, host: str) -> None:
    writer.write(
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        f"X-Stream-Protocol-Version: {_PROTOCOL}\r\nContent-Length: 0\r\n\r\n".encode()
    )
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *headers = answer.split("\r\n")
    if status.split()[1:2] != ["101"]:
        raise StreamFailed(f"the runtime's streams: {status[:_MOST_WORDS]}")
    if f"x-stream-protocol-version: {_PROTOCOL}" not in [header.lower() for header in headers]:
        raise StreamFailed(f"the runtime does not speak {_PROTOCOL}")
