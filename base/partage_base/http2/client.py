"""The client side of HTTP/2 for unary calls, as far as gRPC servers on a unix socket need it. No I/O.

Received bytes go into `receive`, bytes to write come from `take`, and responses complete the futures of their streams.
Receive windows are opened so wide at the start that no response exhausts them. A protocol error ends the connection:
nothing on it is worth saving.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import hpack

from partage_base.http2 import frames

_LARGEST_HEADERS: Final = 64 * 1024
_FIRST_WINDOW: Final = 65535
_ENABLE_PUSH: Final = 2
LARGEST_ANSWER: Final = 16 * 1024 * 1024
LARGEST_QUESTION: Final = 1024 * 1024
"""Most requests are tiny; the largest have a whole pod and its environment."""
_NO_TABLE: Final = b"\x20"
"""Sets the size of the HPACK dynamic table to 0."""
_LAST_STREAM: Final = frames.MAX_STREAM - 2


class NotHttp2(Exception):
    """The peer violates the protocol, or the connection can open no more streams."""


@dataclass
class Reply:
    """The response received so far on one stream, and the part of its request not sent yet."""

    done: asyncio.Future[Reply]
    unsent: memoryview
    window: int
    """Remaining send window of the stream; below 0 after the peer reduced its initial window size."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    data: bytearray = field(default_factory=bytearray)
    reset: int | None = None


def header_block(headers: Mapping[str, str]) -> bytes:
    """A header block that can be reused on every connection: it puts nothing into the peer's dynamic table."""
    never = [hpack.NeverIndexedHeaderTuple(name, value) for name, value in headers.items()]
    return _NO_TABLE + hpack.Encoder().encode(never)


class ClientHalf:
    def __init__(self) -> None:
        self._decoder = hpack.Decoder()
        self._decoder.max_header_list_size = _LARGEST_HEADERS
        self._in = bytearray()
        settings = struct.pack(">HIHI", _ENABLE_PUSH, 0, frames.INITIAL_WINDOW_SIZE, LARGEST_ANSWER)
        window = frames.window_update(0, frames.MAX_STREAM - _FIRST_WINDOW)
        self._out = [frames.PREFACE, frames.frame(frames.SETTINGS, 0, 0, settings), window]
        self._streams: dict[int, Reply] = {}
        self._next = 1
        self._block: tuple[int, int, bytearray] | None = None
        self._uncredited = 0
        self._window = self._window_of_streams = _FIRST_WINDOW
        self.is_usable = True
        self._handlers: Final[Mapping[int, Callable[[int, int, bytes], None]]] = {
            frames.DATA: self._on_data,
            frames.HEADERS: self._on_headers,
            frames.RST_STREAM: self._on_reset,
            frames.SETTINGS: self._on_settings,
            frames.PING: self._on_ping,
            frames.GOAWAY: self._on_goaway,
            frames.WINDOW_UPDATE: self._on_window,
            frames.CONTINUATION: self._on_continuation,
        }

    def take(self) -> bytes:
        """The bytes to write now."""
        out, self._out = b"".join(self._out), []
        return out

    def ask(self, block: bytes, body: bytes, done: asyncio.Future[Reply]) -> int:
        """Begins a call with a block from `header_block`; returns the stream's number."""
        if self._next > _LAST_STREAM:
            self.is_usable = False
            raise NotHttp2("is worn out")
        stream, self._next = self._next, self._next + 2
        self._streams[stream] = question = Reply(done, memoryview(body), self._window_of_streams)
        self._out.append(frames.frame(frames.HEADERS, frames.END_HEADERS, stream, block))
        self._send(stream, question)
        return stream

    def _send(self, stream: int, question: Reply) -> None:
        """Sends as much of the request as the windows allow."""
        while (left := len(question.unsent)) and (size := min(left, self._window, question.window)) > 0:
            size = min(size, frames.FRAME_BYTES)
            self._out.append(frames.data_frame(stream, question.unsent[:size], is_last=size == left))
            question.unsent = question.unsent[size:]
            question.window -= size
            self._window -= size

    def _send_all(self) -> None:
        for stream, question in self._streams.items():
            if self._window <= 0:
                return
            self._send(stream, question)

    def give_up(self, stream: int) -> None:
        """The caller no longer waits for this response."""
        if self._streams.pop(stream, None) is not None:
            self._out.append(frames.rst_stream(stream, frames.ErrorCode.CANCEL))

    def lost(self) -> list[Reply]:
        """The connection is gone; returns the calls that still wait."""
        self.is_usable = False
        waiting, self._streams = list(self._streams.values()), {}
        return waiting

    def receive(self, data: bytes) -> None:
        """Processes received bytes; raises `NotHttp2`."""
        self._in += data
        while len(self._in) >= frames.HEADER_BYTES:
            size = frames.length(self._in, 0)
            if size > frames.FRAME_BYTES:
                raise NotHttp2(f"sent a frame of {size} bytes")
            end = frames.HEADER_BYTES + size
            if len(self._in) < end:
                return
            whole = bytes(memoryview(self._in)[:end])
            del self._in[:end]
            try:
                self._on_frame(whole)
            except frames.Malformed as error:
                raise NotHttp2(f"sent {error}") from None
            except (struct.error, IndexError, hpack.HPACKError, UnicodeDecodeError) as error:
                raise NotHttp2(f"sent a frame that cannot be read ({type(error).__name__})") from None

    def _on_frame(self, whole: bytes) -> None:
        kind, flags, stream = whole[3], whole[4], frames.number(whole, 5)
        if self._block is not None and kind != frames.CONTINUATION:
            raise NotHttp2("sent headers in pieces with something between them")
        # PRIORITY and unknown frame types have no handler.
        if (handle := self._handlers.get(kind)) is not None:
            handle(flags, stream, whole)

    def _on_data(self, flags: int, stream: int, whole: bytes) -> None:
        self._uncredited += len(whole) - frames.HEADER_BYTES
        if self._uncredited >= LARGEST_ANSWER:
            self._out.append(frames.window_update(0, self._uncredited))
            self._uncredited = 0
        answer = self._streams.get(stream)
        if answer is None:
            return
        answer.data += frames.content(whole, 0, len(whole), flags)
        if len(answer.data) > LARGEST_ANSWER:
            raise NotHttp2(f"sent more than {LARGEST_ANSWER} bytes in one answer")
        if flags & frames.END_STREAM:
            self._end(stream)

    def _on_headers(self, flags: int, stream: int, whole: bytes) -> None:
        block = frames.content(whole, 0, len(whole), flags)[5 if flags & frames.PRIORITY else 0 :]
        self._on_block(flags, stream, flags & frames.END_STREAM, bytearray(block))

    def _on_continuation(self, flags: int, stream: int, whole: bytes) -> None:
        if self._block is None or self._block[0] != stream:
            raise NotHttp2("continues headers that it did not begin")
        self._on_block(flags, stream, self._block[1], self._block[2] + whole[frames.HEADER_BYTES :])

    def _on_block(self, flags: int, stream: int, ends: int, block: bytearray) -> None:
        if len(block) > _LARGEST_HEADERS:
            raise NotHttp2("sent too many headers")
        if not flags & frames.END_HEADERS:
            self._block = (stream, ends, block)
            return
        self._block = None
        headers = self._decoder.decode(bytes(block), raw=True)
        answer = self._streams.get(stream)
        if answer is None:
            return
        for name, value in headers:
            answer.headers[name.decode("latin-1")] = value.decode("latin-1")
        if ends:
            self._end(stream)

    def _on_settings(self, flags: int, _: int, whole: bytes) -> None:
        if flags & frames.ACK:
            return
        settings = frames.settings(whole, 0, len(whole))
        self._out.append(frames.frame(frames.SETTINGS, frames.ACK, 0, b""))
        if (window := settings.get(frames.INITIAL_WINDOW_SIZE)) is not None:
            more, self._window_of_streams = window - self._window_of_streams, window
            for question in self._streams.values():
                question.window += more
            self._send_all()

    def _on_ping(self, flags: int, _: int, whole: bytes) -> None:
        if not flags & frames.ACK:
            self._out.append(frames.frame(frames.PING, frames.ACK, 0, whole[frames.HEADER_BYTES :]))

    def _on_goaway(self, _flags: int, _: int, whole: bytes) -> None:
        self.is_usable = False
        last = struct.unpack_from(">I", whole, frames.HEADER_BYTES)[0] & frames.STREAM_MASK
        for stream in [stream for stream in self._streams if stream > last]:
            self._reset(stream, frames.ErrorCode.REFUSED_STREAM)

    def _on_window(self, _: int, stream: int, whole: bytes) -> None:
        credit = _only_number(whole) & frames.STREAM_MASK
        if stream == 0:
            self._window += credit
            self._send_all()
        elif (question := self._streams.get(stream)) is not None:
            question.window += credit
            self._send(stream, question)

    def _on_reset(self, _: int, stream: int, whole: bytes) -> None:
        self._reset(stream, _only_number(whole))

    def _reset(self, stream: int, code: int) -> None:
        if stream in self._streams:
            self._streams[stream].reset = code
            self._end(stream)

    def _end(self, stream: int) -> None:
        answer = self._streams.pop(stream)
        if not answer.done.done():
            answer.done.set_result(answer)


def _only_number(whole: bytes) -> int:
    """The 32-bit number that is a frame's whole payload; raises `struct.error` for another size."""
    return int(struct.unpack(">I", whole[frames.HEADER_BYTES :])[0])
