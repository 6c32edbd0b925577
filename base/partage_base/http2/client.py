"""The client's half of HTTP/2 for unary calls, as far as gRPC servers on a unix socket need it. No I/O.

Bytes go in by `receive`, bytes to write come out by `take`, answers by the futures of streams. Windows for what we
receive are opened so wide at the start that no answer meets them. What is not the protocol ends the connection: there
is nothing on it that would be worth saving.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import hpack

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_FRAME_HEADER: Final = 9
_LARGEST_FRAME: Final = 16384
_LARGEST_HEADERS: Final = 64 * 1024
_CANCEL: Final = 8
_TABLE_SIZE_SETTING, _PUSH_SETTING, _WINDOW_SETTING = 1, 2, 4
_FIRST_WINDOW: Final = 65535
LARGEST_ANSWER: Final = 16 * 1024 * 1024
LARGEST_QUESTION: Final = 16 * 1024
"""Ours are tiny; one that fits a frame and the first windows needs no flow control."""
_LAST_STREAM: Final = 2**31 - 3


class NotHttp2(Exception):
    """What the peer sends is not the protocol, or it ends the connection."""


@dataclass
class Answer:
    """What has come for one stream so far."""

    done: asyncio.Future[Answer]
    headers: dict[str, str] = field(default_factory=dict[str, str])
    data: bytearray = field(default_factory=bytearray)
    reset: int | None = None


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class ClientHalf:
    """One connection."""

    def __init__(self) -> None:
        self._encoder, self._decoder = hpack.Encoder(), hpack.Decoder()
        self._decoder.max_header_list_size = _LARGEST_HEADERS
        self._in = bytearray()
        settings = struct.pack(">HIHI", _PUSH_SETTING, 0, _WINDOW_SETTING, LARGEST_ANSWER)
        window = struct.pack(">I", 2**31 - 1 - _FIRST_WINDOW)
        self._out = [PREFACE, _frame(_SETTINGS, 0, 0, settings), _frame(_WINDOW, 0, 0, window)]
        self._streams: dict[int, Answer] = {}
        self._next = 1
        self._block: tuple[int, int, bytearray] | None = None
        self._uncredited = 0
        self._window = _FIRST_WINDOW
        self.is_usable = True
        self._handlers: Final[Mapping[int, Callable[[int, int, bytes], None]]] = {
            _DATA: self._on_data,
            _HEADERS: self._on_headers,
            _RST: self._on_reset,
            _SETTINGS: self._on_settings,
            _PING: self._on_ping,
            _GOAWAY: self._on_goaway,
            _WINDOW: self._on_window,
            _CONTINUATION: self._on_continuation,
        }

    def take(self) -> bytes:
        """What is to be written now."""
        out, self._out = b"".join(self._out), []
        return out

    def ask(self, headers: Mapping[str, str], body: bytes, done: asyncio.Future[Answer]) -> int:
        """Begins a call; its number."""
        if self._next > _LAST_STREAM or len(body) > self._window:
            self.is_usable = False
            raise NotHttp2("is worn out")
        stream, self._next = self._next, self._next + 2
        self._window -= len(body)
        self._streams[stream] = Answer(done)
        block = self._encoder.encode(list(headers.items()))
        self._out += [_frame(_HEADERS, _END_HEADERS, stream, block), _frame(_DATA, _END_STREAM, stream, body)]
        return stream

    def give_up(self, stream: int) -> None:
        """Nobody waits for this answer any more."""
        if self._streams.pop(stream, None) is not None:
            self._out.append(_frame(_RST, 0, stream, struct.pack(">I", _CANCEL)))

    def lost(self) -> list[Answer]:
        """The connection is gone: those who still wait."""
        self.is_usable = False
        waiting, self._streams = list(self._streams.values()), {}
        return waiting

    def receive(self, data: bytes) -> None:
        """What has come; raises `NotHttp2`."""
        self._in += data
        while len(self._in) >= _FRAME_HEADER:
            size = int.from_bytes(self._in[:3], "big")
            if size > _LARGEST_FRAME:
                raise NotHttp2(f"sent a frame of {size} bytes")
            if len(self._in) < _FRAME_HEADER + size:
                return
            kind, flags = self._in[3], self._in[4]
            stream = int.from_bytes(self._in[5:9], "big") & 0x7FFF_FFFF
            payload = bytes(memoryview(self._in)[_FRAME_HEADER : _FRAME_HEADER + size])
            del self._in[: _FRAME_HEADER + size]
            try:
                self._frame(kind, flags, stream, payload)
            except (struct.error, IndexError, hpack.HPACKError, UnicodeDecodeError) as error:
                raise NotHttp2(f"sent a frame that cannot be read ({type(error).__name__})") from None

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and kind != _CONTINUATION:
            raise NotHttp2("sent headers in pieces with something between them")
        # Priorities and what later versions may add have no handler.
        if (handle := self._handlers.get(kind)) is not None:
            handle(flags, stream, payload)

    def _on_data(self, flags: int, stream: int, payload: bytes) -> None:
        self._uncredited += len(payload)
        if self._uncredited >= LARGEST_ANSWER:
            self._out.append(_frame(_WINDOW, 0, 0, struct.pack(">I", self._uncredited)))
            self._uncredited = 0
        answer = self._streams.get(stream)
        if answer is None:
            return
        answer.data += _unpadded(flags, payload)
        if len(answer.data) > LARGEST_ANSWER:
            raise NotHttp2(f"sent more than {LARGEST_ANSWER} bytes in one answer")
        if flags & _END_STREAM:
            self._end(stream)

    def _on_headers(self, flags: int, stream: int, payload: bytes) -> None:
        block = _unpadded(flags, payload)[5 if flags & _PRIORITY else 0 :]
        self._on_block(flags, stream, flags & _END_STREAM, bytearray(block))

    def _on_continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self._block is None or self._block[0] != stream:
            raise NotHttp2("continues headers that it did not begin")
        self._on_block(flags, stream, self._block[1], self._block[2] + payload)

    def _on_block(self, flags: int, stream: int, ends: int, block: bytearray) -> None:
        if len(block) > _LARGEST_HEADERS:
            raise NotHttp2("sent too many headers")
        if not flags & _END_HEADERS:
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

    def _on_settings(self, flags: int, _: int, payload: bytes) -> None:
        if flags & _ACK:
            return
        for setting, value in struct.iter_unpack(">HI", payload):
            if setting == _TABLE_SIZE_SETTING:
                self._encoder.header_table_size = min(value, 4096)
        self._out.append(_frame(_SETTINGS, _ACK, 0))

    def _on_ping(self, flags: int, _: int, payload: bytes) -> None:
        if not flags & _ACK:
            self._out.append(_frame(_PING, _ACK, 0, payload))

    def _on_goaway(self, _flags: int, _: int, payload: bytes) -> None:
        self.is_usable = False
        last = struct.unpack(">I", payload[:4])[0] & 0x7FFF_FFFF
        for stream in [stream for stream in self._streams if stream > last]:
            self._reset(stream, 0)

    def _on_window(self, _: int, stream: int, payload: bytes) -> None:
        if stream == 0:  # a stream's own window is never needed
            self._window += struct.unpack(">I", payload)[0] & 0x7FFF_FFFF

    def _on_reset(self, _: int, stream: int, payload: bytes) -> None:
        self._reset(stream, struct.unpack(">I", payload)[0])

    def _reset(self, stream: int, code: int) -> None:
        if stream in self._streams:
            self._streams[stream].reset = code
            self._end(stream)

    def _end(self, stream: int) -> None:
        answer = self._streams.pop(stream)
        if not answer.done.done():
            answer.done.set_result(answer)


def _unpadded(flags: int, payload: bytes) -> bytes:
    return payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload
