"""A runtime's end of streams, for tests of what joins them: one connection, served as the test says."""

from __future__ import annotations

import asyncio
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

from rig.patience import patience_s

HEAD = struct.Struct(">II")
CONTROL, SYN_STREAM, SYN_REPLY, RST_STREAM, GOAWAY = 0x80030000, 1, 2, 3, 7
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"


class Peer:
    """Its streams by name; what the client sends, and with `None` the end of a stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._headers = zlib.decompressobj()
        self.numbers: dict[str, int] = {}

    async def opened(self, count: int, *, replies: bool = True) -> None:
        while len(self.numbers) < count:
            first, body = await self._frame()
            assert first == CONTROL | SYN_STREAM
            number = int.from_bytes(body[:4], "big")
            self.numbers[self._headers.decompress(body[10:]).decode().rpartition("\0")[2][1:]] = number
        if replies:
            self.reply()

    def reply(self) -> None:
        for number in self.numbers.values():
            self._writer.write(HEAD.pack(CONTROL | SYN_REPLY, 4) + struct.pack(">I", number))

    async def is_silent(self) -> bool:
        """For a moment: what comes is no promise, what does not come yet might still."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                return not await self._reader.read(1)
        return True

    async def received(self) -> AsyncIterator[tuple[str, bytes | None]]:
        names = {number: name for name, number in self.numbers.items()}
        while True:
            try:
                number, body = await self._frame()
            except EOFError:
                return
            yield names[number], body or None

    def send(self, name: str, data: bytes) -> None:
        self._writer.write(HEAD.pack(self.numbers[name], len(data)) + data)

    def end(self, status: bytes) -> None:
        """As the runtime's server does it: the status, then no more."""
        self.send("error", status)
        for number in self.numbers.values():
            self._writer.write(HEAD.pack(CONTROL | RST_STREAM, 8) + struct.pack(">II", number, 5))
        self._writer.write(HEAD.pack(CONTROL | GOAWAY, 8) + bytes(8))

    async def _frame(self) -> tuple[int, bytes]:
        first, second = HEAD.unpack(await self._reader.readexactly(HEAD.size))
        return first, await self._reader.readexactly(second & 0xFFFFFF)


Serve = Callable[[Peer], Awaitable[None]]


@contextmanager
def spdy_runtime(serve: Serve, answer: bytes = SWITCHED) -> Generator[str]:
    """The URL of streams that are served so; `answer` is all that a client gets that is not switched over."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert "Upgrade: SPDY/3.1" in head
        writer.write(answer)
        if answer == SWITCHED:
            await serve(Peer(reader, writer))
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
            ports.append(server.sockets[0].getsockname()[1])
            ready.set()
            await asyncio.to_thread(over.wait)

    ports, ready, over = list[int](), threading.Event(), threading.Event()
    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(patience_s())
    try:
        yield f"http://127.0.0.1:{ports[0]}/exec/token"
    finally:
        over.set()
        thread.join()
