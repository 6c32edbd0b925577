"""Serves clients on a listening socket, each proxied to its own connection to the runtime.

    proxy = ProxyServer(upstream, admission, on_call=note)
    proxy.serve(listening)
    ...
    await proxy.drain(within_s=10)

The listening socket is passed in and remains its owner's: systemd, or a process that hands it to its successor. A
proxy that drains does not close it, and the next process that listens on it gets the new clients.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine
from os import PathLike, fspath, strerror
from typing import Final, cast

from partage_crishim.decisions import Decide
from partage_crishim.proxy.connection import CLOSE_WITHIN_S, Connection, ProxyContext
from partage_crishim.proxy.counters import Counters
from partage_crishim.proxy.http2.quota import Quota, QuotaLimits
from partage_crishim.proxy.http2.unavailable import UnavailableResponder

LOOK_EVERY_S: Final = 0.1
"""Interval of probes for an absent runtime while clients wait for it."""
_DIAL_WITHIN_S: Final = 5.0
_PAUSE_S: Final = 0.5
"""Delay before accepting again if this process has no file descriptors left."""
_AT_ONCE: Final = 64
_GONE_BEFORE: Final = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.EAGAIN, errno.EINTR})


class AwayClient(asyncio.Protocol):
    """A client that connected while the runtime did not answer; it is served here until the runtime does."""

    def __init__(self, sentence: str, on_gone: Callable[[AwayClient], None]) -> None:
        self._unavailable = UnavailableResponder(sentence)
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and send SETTINGS first."""
        self._transport = cast("asyncio.Transport", transport)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        """Nothing can be sent any more."""
        self._transport = None
        if self._impatience is not None:
            self._impatience.cancel()
        self._on_gone(self)

    def data_received(self, data: bytes) -> None:
        self._unavailable.from_client(data)
        self._flush()

    def pause_writing(self) -> None:
        """The client sends calls but does not receive: stop reading from it."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def leave(self) -> None:
        """Dismiss the client: the runtime is back, or this process exits."""
        self._unavailable.leave()
        self._flush()

    def _flush(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._unavailable.to_client:
            self._transport.write(b"".join(self._unavailable.to_client))
            self._unavailable.to_client.clear()
        if self._unavailable.is_over:
            self._impatience = asyncio.get_running_loop().call_later(CLOSE_WITHIN_S, self._transport.abort)
            self._transport.close()


async def answers(path: str, within_s: float) -> bool:
    """Whether a runtime listens at `path`."""
    try:
        async with asyncio.timeout(within_s):
            knock, _ = await asyncio.get_running_loop().create_unix_connection(asyncio.Protocol, path)
    except OSError:
        return False
    knock.abort()
    return True


class ProxyServer:
    """All clients of one runtime."""

    def __init__(
        self,
        upstream: str | PathLike[str],
        admission: Decide,
        on_call: Callable[[str], None] = lambda _: None,
        limits: QuotaLimits | None = None,
        counters: Counters | None = None,
    ) -> None:
        self.counters = counters or Counters()
        self._upstream = fspath(upstream)
        self._shared = ProxyContext(admission, on_call, self.counters, Quota(limits))
        self._connections: set[Connection] = set()
        self._away: set[AwayClient] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._listening: list[socket.socket] = []
        self._is_draining = False
        self._empty = asyncio.Event()

    def serve(self, listening: socket.socket) -> None:
        """Accept clients from a listening socket, using its own non-blocking duplicate of the descriptor."""
        own = listening.dup()
        own.setblocking(False)
        self._listening.append(own)
        asyncio.get_running_loop().add_reader(own, self._accept, own)

    async def drain(self, within_s: float) -> None:
        """Stop accepting, ask all clients to leave, and return once all have left or were cut off at the deadline."""
        self._is_draining = True
        self._stop_accepting()
        for away in list(self._away):
            away.leave()
        for connection in list(self._connections):
            connection.drain()
        try:
            async with asyncio.timeout(within_s):
                await self._until_empty()
        except TimeoutError:
            for connection in list(self._connections):
                connection.cut_off("the deadline for draining has passed")
            await self._until_empty()

    async def close(self) -> None:
        await self.drain(0)

    # Accepting clients.

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, _ = listening.accept()
            except OSError as error:
                if error.errno not in _GONE_BEFORE:
                    self._pause(listening, error)
                return
            self._start(self._connect(client))

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Stop polling the socket for a while: it stays readable, so the loop would do nothing else."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        loop.call_exception_handler({"message": f"cannot accept a client, will try again: {error}"})
        loop.call_later(_PAUSE_S, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._listening:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _connect(self, client: socket.socket) -> None:
        """Connect upstream first; what the client sends meanwhile waits in its socket."""
        loop = asyncio.get_running_loop()
        connection = Connection(self._shared, self._gone)
        self.counters.connections += 1
        self.counters.open_connections += 1
        self._connections.add(connection)
        try:
            async with asyncio.timeout(_DIAL_WITHIN_S):
                await loop.create_unix_connection(lambda: connection.upstream, self._upstream)
        except OSError as error:  # includes TimeoutError
            self._gone(connection)
            await self._turn_away(client, error)
            return
        await loop.connect_accepted_socket(lambda: connection.client, client)
        connection.begin()
        if self._is_draining:
            connection.drain()

    def _gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.counters.open_connections -= 1
        self._look_empty()

    # While the runtime does not answer.

    async def _turn_away(self, client: socket.socket, error: OSError) -> None:
        self.counters.turned_away += 1
        why = (strerror(error.errno) if error.errno else "timed out").lower()
        sentence = (
            f'connection error: desc = "transport: Error while dialing: dial unix {self._upstream}: connect: {why}"'
        )
        away = AwayClient(sentence, self._came_and_went)
        self._away.add(away)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: away, client)
        if self._is_draining:
            away.leave()
        elif self._watching is None:
            self._watching = self._start(self._watch())

    def _came_and_went(self, away: AwayClient) -> None:
        self._away.discard(away)
        self._look_empty()

    async def _watch(self) -> None:
        """Probe the runtime until it answers, then dismiss all waiting clients so that they reconnect."""
        while self._away and not self._is_draining:
            if await answers(self._upstream, _DIAL_WITHIN_S):
                for away in list(self._away):
                    away.leave()
            await asyncio.sleep(LOOK_EVERY_S)
        self._watching = None

    # Shutdown.

    def _stop_accepting(self) -> None:
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._listening.clear()

    async def _until_empty(self) -> None:
        self._look_empty()
        await self._empty.wait()
        await asyncio.gather(*self._tasks)

    def _look_empty(self) -> None:
        if self._is_draining and not self._connections and not self._away:
            self._empty.set()

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
