"""The models on real sockets, with a proxy between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, cast

from partage_crishim.decisions import Decide, Decision, InterceptedCall, Pass
from partage_crishim.proxy import ProxyServer
from partage_crishim.proxy.http2.quota import QuotaLimits
from rig.client.wait import patient
from support.fake_runtime import FakeRuntime
from support.sockets import listening
from support.splice import wire
from support.splice.peers import Call, Client, Runtime


async def passing(_: InterceptedCall) -> Decision:
    return Pass()


class Answering:
    """A runtime that answers every call after receiving all of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connections: list[tuple[Runtime, asyncio.StreamWriter]] = []
        self.answers = True
        """Applies to connections accepted from now on."""
        self._server: asyncio.AbstractServer | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for _, writer in self.connections:
            writer.close()
        self.connections.clear()
        self.path.unlink(missing_ok=True)
        await asyncio.sleep(0.02)  # closed transports end in the next iterations of the loop

    def flush(self) -> None:
        """Send what a test has queued in a model."""
        for runtime, writer in self.connections:
            if not writer.is_closing():
                writer.write(bytes(runtime.out))
                runtime.out.clear()

    def answer(self, runtime: Runtime, stream: int) -> bytes:
        """The answer to a call; it names the stream, so that no other's passes for it."""
        return b"answer %d" % stream

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        runtime = Runtime()
        self.connections.append((runtime, writer))
        self.flush()
        try:
            await self._talk(runtime, reader)
        finally:
            writer.close()
            if (runtime, writer) in self.connections:
                self.connections.remove((runtime, writer))

    async def _talk(self, runtime: Runtime, reader: asyncio.StreamReader) -> None:
        answers = self.answers
        while data := await reader.read(1 << 16):
            runtime.receive(data)
            for stream, call in runtime.calls.items():
                runtime.credit_call(stream, 1 << 30)
                if answers and call.is_sent and not call.is_over and not call.was_reset:
                    runtime.answer(stream, self.answer(runtime, stream))
            runtime.credit(1 << 30)
            self.flush()


class RuntimeSocket(Answering):
    """A fake runtime at a socket, which asserts that its clients follow HTTP/2."""

    def __init__(self, path: Path, runtime: FakeRuntime) -> None:
        super().__init__(path)
        self.runtime = runtime

    def answer(self, runtime: Runtime, stream: int) -> bytes:
        return self.runtime.answer(runtime.methods[stream], runtime.calls[stream].got[5:])


class Calling:
    """A connected client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.model = Client()
        self.reader = reader
        self.writer = writer

    def begin(self, method: str, body: bytes) -> int:
        """Send a call, as far as windows allow."""
        stream = self.model.open(method, wire.message(body))
        self._push()
        return stream

    async def end(self, stream: int) -> Call:
        """Wait for the answer."""
        call = self.model.calls[stream]
        async with patient("the call ends", seen=lambda: call):
            while not call.is_over and await self.listen():
                pass
        return call

    async def call(self, method: str, body: bytes = b"") -> Call:
        return await self.end(self.begin(method, body))

    async def listen(self) -> bool:
        """Receive data; False at the end of the connection."""
        data = await self.reader.read(1 << 16)
        self.model.receive(data)
        self._push()
        return bool(data)

    async def is_closed(self) -> bool:
        """Wait for the end of the connection."""
        async with patient("the connection ends"):
            while await self.listen():
                pass
        return True

    def _push(self) -> None:
        for stream, call in self.model.calls.items():
            while (before := len(call.unsent)) and not call.was_reset:
                self.model.push(stream, 16384)
                if len(call.unsent) == before:
                    break
        self.writer.write(bytes(self.model.out))
        self.model.out.clear()


class Stage:
    """A proxy with its runtime and its clients."""

    def __init__(self, folder: Path, admission: Decide, limits: QuotaLimits | None) -> None:
        self.runtime = Answering(folder / "runtime.sock")
        self.path = folder / "splice.sock"
        self.proxy = ProxyServer(self.runtime.path, admission, limits=limits)
        self.listening = listening(self.path)
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> Calling:
        reader, writer = await asyncio.open_unix_connection(self.path)
        self._writers.append(writer)
        return Calling(reader, writer)

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        await self.proxy.close()
        self.listening.close()
        await self.runtime.stop()


@asynccontextmanager
async def stage(
    folder: Path, admission: Decide = passing, limits: QuotaLimits | None = None
) -> AsyncGenerator[Stage, None]:
    each = Stage(folder, admission, limits)
    await each.runtime.start()
    each.proxy.serve(each.listening)
    try:
        yield each
    finally:
        await each.close()


async def until(is_so: Callable[[], bool]) -> None:
    async with patient(is_so):
        while not is_so():  # noqa: ASYNC110 - what is waited for knows of no event
            await asyncio.sleep(0.005)


def pause(writer: asyncio.StreamWriter) -> None:
    """Stop reading at this end."""
    cast("asyncio.Transport", writer.transport).pause_reading()
