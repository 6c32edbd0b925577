"""One client and its connection to the runtime.

The client is not read until the runtime connection is up, so no data accumulates that cannot be forwarded. If one side
is slow to receive, reading from the other stops, so the transports' high-water marks bound the buffers of both. A
client that stops receiving while its calls need replies from us is not read either.

When one side ends, the other is closed too, after it has received what was written or a timeout has passed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from partage_crishim.decisions import Code, Decide, Decision, Pass, Refuse, Rewrite
from partage_crishim.proxy.counters import Counters
from partage_crishim.proxy.http2.connection_pair import ConnectionPair
from partage_crishim.proxy.http2.outbox import CallEnded, DecisionUnwanted, DecisionWanted, ProxyEvent, Rejected
from partage_crishim.proxy.http2.quota import Quota

CLOSE_WITHIN_S: Final = 1.0
_MUCH_BYTES: Final = 1 << 20
_DEFECT: Final = Refuse(Code.INTERNAL, "partage: crishim failed to judge this request; its log says why")
_OUTCOMES: Final = {Pass: "passed", Rewrite: "rewritten", Refuse: "refused"}


@dataclass(frozen=True)
class ProxyContext:
    """State that all links of a proxy share."""

    admission: Decide
    on_call: Callable[[str], None]
    counters: Counters
    quota: Quota


class Endpoint(asyncio.Protocol):
    """One of the two sockets."""

    def __init__(
        self, take: Callable[[bytes], None], on_change: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_full = False
        self._take = take
        self._on_change = on_change
        self._on_end = on_end
        self._is_read = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's has the methods and not the class

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        """Nothing can be written any more."""
        self.transport = None
        self._on_end()

    def pause_writing(self) -> None:
        self.is_full = True
        self._on_change()

    def resume_writing(self) -> None:
        self.is_full = False
        self._on_change()

    @property
    def waiting_bytes(self) -> int:
        """Bytes in the write buffer."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def write(self, parts: list[bytes]) -> None:
        """Write all parts in one call once there is a connection; leaves the list empty."""
        if self.transport is not None:
            self.transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
            parts.clear()

    def read(self, *, wanted: bool) -> None:
        if self.transport is None or self.transport.is_closing() or wanted == self._is_read:
            return
        self._is_read = wanted
        (self.transport.resume_reading if wanted else self.transport.pause_reading)()

    def close(self) -> None:
        """Close once the write buffer is flushed."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Connection:
    """The proxied connection of one client."""

    def __init__(self, shared: ProxyContext, on_gone: Callable[[Connection], None]) -> None:
        self._shared = shared
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._pair = ConnectionPair(shared.quota, wake=self._wake)
        self._judging: dict[int, asyncio.Task[Decision]] = {}
        """Tasks that decide on intercepted calls, by stream."""
        self.client = Endpoint(self._from_client, self._set_reading, partial(self.end, "the client closed"))
        self.upstream = Endpoint(self._from_upstream, self._set_reading, partial(self.end, "the runtime closed"))
        self._is_ending = False
        self._was_blocked = False
        self._impatience: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start once both sides are connected; the runtime may have sent data before."""
        self._flush()
        if self._is_ending:  # the runtime disconnected before the client was set up
            self.client.close()

    def drain(self) -> None:
        """Ask the client to send new calls elsewhere, and end once the open calls are answered."""
        self._pair.drain()
        self._flush()

    def cut_off(self, why: str) -> None:
        """End now, even with open calls."""
        self._pair.leave(why)
        self._flush()

    def end(self, why: str) -> None:
        """Close both sides, and end waiting calls."""
        if not self._is_ending:
            self._is_ending = True
            self._pair.lost(why)
            self._flush()
            for side in (self.client, self.upstream):
                side.close()
            self._impatience = self._loop.call_later(CLOSE_WITHIN_S, self._abort)
        if self.client.transport is None and self.upstream.transport is None and self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None
            self._on_gone(self)

    def _from_client(self, data: bytes) -> None:
        self._shared.counters.from_client_bytes += len(data)
        self._pair.from_client(data)
        self._flush()

    def _from_upstream(self, data: bytes) -> None:
        self._shared.counters.from_upstream_bytes += len(data)
        self._pair.from_upstream(data)
        self._flush()

    def _decided(self, stream: int, started: float, task: asyncio.Task[Decision]) -> None:
        """Handle a decision; a cancelled task was no longer wanted."""
        counters = self._shared.counters
        del self._judging[stream]
        if task.cancelled():
            counters.held["dropped"] += 1
            return
        if (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "a judge raised, which it must not", "exception": error})
        decision = _DEFECT if error is not None else task.result()
        counters.judging.observe(time.monotonic() - started)
        counters.held[_OUTCOMES[type(decision)]] += 1
        self._pair.decided(stream, decision)
        self._flush()

    def _wake(self) -> None:
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write and dispatch everything in the pair's outbox."""
        pair, out = self._pair, self._pair.out
        if out.to_upstream:
            self.upstream.write(out.to_upstream)
        if out.to_client:
            self.client.write(out.to_client)
        if pair.methods:
            for method in pair.methods:
                self._shared.counters.call(method)
                self._shared.on_call(method)
            pair.methods.clear()
        if out.events:
            events, out.events = out.events, []
            for happening in events:
                self._act(happening)
        if pair.over is not None:
            if not self._is_ending:
                self._shared.counters.broken += pair.is_broken
                self.end(str(pair.over))
        elif pair.is_blocked != self._was_blocked or self.client.is_full:
            self._was_blocked = pair.is_blocked
            self._set_reading()

    def _act(self, happening: ProxyEvent) -> None:
        match happening:
            case DecisionWanted(stream, call):
                task = self._judging[stream] = self._loop.create_task(self._shared.admission(call))
                task.add_done_callback(partial(self._decided, stream, time.monotonic()))
            case DecisionUnwanted(stream):
                if (unwanted := self._judging.get(stream)) is not None:
                    unwanted.cancel()
            case Rejected():
                self._shared.counters.held["rejected"] += 1
            case CallEnded(ended, ending):
                try:
                    ended(ending)
                except Exception as error:  # noqa: BLE001 - someone else's mistake must not cost other calls
                    why = "the receiver of a call's end raised"
                    self._loop.call_exception_handler({"message": why, "exception": error})

    def _set_reading(self) -> None:
        client, upstream = self.client, self.upstream
        is_swamped = client.is_full and client.waiting_bytes > _MUCH_BYTES
        client.read(wanted=not (upstream.is_full or self._pair.is_blocked or is_swamped))
        upstream.read(wanted=not client.is_full)

    def _abort(self) -> None:
        self._impatience = self._loop.call_later(CLOSE_WITHIN_S, self._abort)
        self.client.abort()
        self.upstream.abort()
