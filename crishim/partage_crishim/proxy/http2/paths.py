"""The request path and the response path of one client: each walks the received data frame by frame.

Frames are forwarded in the longest possible runs; if nothing has to be removed or inserted, the received object itself
is forwarded, and no object is created per frame. In requests, only headers and the DATA of intercepted calls are
inspected. In responses, everything passes except credits that are not the client's, and headers are not decoded: frames
alone show that a call has ended, and whether it returned a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed, Remainder
from partage_crishim.decisions import INTERCEPTED, Ending
from partage_crishim.proxy.http2.calls import Calls
from partage_crishim.proxy.http2.outbox import Outbox
from partage_crishim.proxy.http2.quota import Quota
from partage_crishim.proxy.http2.requests import Request, Requests, block
from partage_crishim.proxy.http2.windows import Windows

MAX_OPEN: Final = 1 << 14
"""Concurrent calls of one connection."""
DRAINING: Final = b"partage\x00"
"""The payload of our PING. Its echo means that the client has read the GOAWAY before it."""
_HEADER: Final = frames.HEADER_BYTES
_NUMBER_BYTES: Final = 4
_REQUESTS_LOOKED_AT: Final = frozenset(
    {
        frames.DATA,
        frames.HEADERS,
        frames.RST_STREAM,
        frames.SETTINGS,
        frames.PING,
        frames.PUSH_PROMISE,
        frames.CONTINUATION,
    }
)
_ANSWERS_LOOKED_AT: Final = frozenset({frames.RST_STREAM, frames.SETTINGS, frames.GOAWAY, frames.CONTINUATION})
_ANSWERS_BLOCKS: Final = frozenset({frames.HEADERS, frames.PUSH_PROMISE})


class ConnectionPairState:
    """State that both paths of a pair share."""

    def __init__(self, quota: Quota, wake: Callable[[], None]) -> None:
        self.out = Outbox()
        self.windows = Windows()
        self.requests = Requests()
        self.calls = Calls(self.out, self.windows, quota, wake)
        self.open: set[int] = set()
        """Calls without a response so far."""
        self.last = 0
        """The client's newest stream."""
        self.request_bound = Bound()
        self.answer_bound = Bound()
        self.is_blocked = False
        """The client's next data has to wait for the runtime's window."""
        self.is_draining = False
        self.has_seen_goaway = False


class Bound:
    """The maximum size of a frame that must be buffered until complete, as set by its receiver, who may raise it."""

    def __init__(self) -> None:
        self._bytes = frames.FRAME_BYTES

    def widen(self, values: Mapping[int, int]) -> None:
        """Apply the receiver's SETTINGS. Never lowered: frames made before may still be in transit."""
        self._bytes = max(self._bytes, values.get(frames.MAX_FRAME_SIZE, 0))

    def checked(self, need: int) -> int:
        """The number of bytes needed for a frame, or for a header block with its continuations."""
        if need > max(self._bytes, frames.MAX_BLOCK_BYTES) + 2 * frames.HEADER_BYTES:
            raise Malformed(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {need - frames.HEADER_BYTES} bytes")
        return need


class _Path:
    """The base of both paths: the buffer of incomplete frames, and the output list."""

    def __init__(self, state: ConnectionPairState, passed: list[bytes]) -> None:
        self._state = state
        self._calls = state.calls
        self._windows = state.windows
        self._passed = passed
        self._remainder = Remainder()

    @property
    def kept_bytes(self) -> int:
        """Bytes that wait for the rest of their frame, or for the runtime."""
        return len(self._remainder)

    def _pass(self, data: bytes, start: int, end: int) -> None:
        """Forward a run of frames; if it is everything received, forward the same object."""
        if start < end:
            self._passed.append(data if end - start == len(data) else data[start:end])


class RequestPath(_Path):
    """From the client to the runtime."""

    def __init__(self, state: ConnectionPairState) -> None:
        super().__init__(state, state.out.to_upstream)
        self.methods: list[str] = []
        self._has_preface = False

    def take(self, data: bytes) -> None:
        whole = self._remainder.joined(data)
        if whole is None:
            return
        if self._state.is_blocked:
            self._remainder.keep(whole, 0, 0)
        elif self._has_preface:
            self._walk(whole, 0)
        else:
            self._begin(whole)

    def go_on(self) -> None:
        """The runtime has more room."""
        self._state.is_blocked = False
        self._walk(self._remainder.take(), 0)

    def _begin(self, data: bytes) -> None:
        preface = len(frames.PREFACE)
        if data[:preface] != frames.PREFACE[: len(data)]:
            raise Malformed(ErrorCode.PROTOCOL_ERROR, "the client does not speak HTTP/2")
        if len(data) < preface:
            self._remainder.keep(data, 0, preface)
            return
        self._has_preface = True
        self._walk(data, preface)

    def _walk(self, data: bytes, at: int) -> None:
        """Walk the frames; `end` is the end of the frame at `at`, or of its header until its length is known."""
        start, size, end = 0, len(data), at + _HEADER
        by_stream, windows, state = self._calls.by_stream, self._windows, self._state
        while end <= size:
            length = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            kind = data[at + 3]
            end += length
            if kind == frames.HEADERS and not data[at + 4] & frames.END_HEADERS:
                end = frames.block_end(data, at)
            if end > size:
                break
            if kind == frames.DATA and not by_stream and not windows.debt:
                windows.left -= length
            elif kind in _REQUESTS_LOOKED_AT:
                start = self._look(kind, data, (start, at, end))
                if state.is_blocked:
                    end = at
                    break
            at = end
            end += _HEADER
        self._pass(data, start, at)
        if at < size:
            self._remainder.keep(data, at, state.request_bound.checked(end - at))
        self._calls.flush_credits()

    def _look(self, kind: int, data: bytes, where: tuple[int, int, int]) -> int:
        """Inspect one frame; returns the start of the run that the next frame belongs to."""
        start, at, end = where
        if kind == frames.HEADERS:
            request = self._request(data, at, end)
            if request is None:
                return start
            self._pass(data, start, end)
            self._calls.open(self._state.last, request)
            return end
        self._pass(data, start, at)
        return at if self._passes(kind, data, at, end) else end

    def _request(self, data: bytes, at: int, end: int) -> Request | None:
        """Read a header block; returns the request if the call is to be intercepted."""
        state, stream, is_last = self._state, frames.number(data, at + 5), bool(data[at + 4] & frames.END_STREAM)
        request = state.requests.read(block(data, at, end))
        if stream <= state.last:
            if not is_last:
                raise Malformed(ErrorCode.PROTOCOL_ERROR, "headers in the middle of a call")
            held = self._calls.by_stream.get(stream)
            if held is not None:
                self._calls.trailers(held)
            return None
        if not stream & 1 or len(state.open) >= MAX_OPEN:
            raise Malformed(ErrorCode.PROTOCOL_ERROR, f"a call on stream {stream}, with {len(state.open)} open")
        state.last = stream
        state.open.add(stream)
        self.methods.append(request.method)
        return None if is_last or request.method not in INTERCEPTED else request

    def _passes(self, kind: int, data: bytes, at: int, end: int) -> bool:
        """Inspect a frame other than HEADERS; returns whether it is forwarded."""
        if kind == frames.DATA:
            return self._data(data, at, end)
        if kind == frames.RST_STREAM:
            stream = frames.number(data, at + 5)
            self._state.open.discard(stream)
            held = self._calls.by_stream.get(stream)
            return held is None or self._calls.reset(held)
        if kind == frames.SETTINGS:
            if not data[at + 4] & frames.ACK:
                self._state.answer_bound.widen(frames.settings(data, at, end))
            return True
        if kind == frames.PING:
            is_echo = data[at + 4] & frames.ACK and data[at + _HEADER : end] == DRAINING and self._state.is_draining
            self._state.has_seen_goaway = self._state.has_seen_goaway or bool(is_echo)
            return not is_echo
        raise Malformed(ErrorCode.PROTOCOL_ERROR, f"a frame of kind {kind} where none may be")

    def _data(self, data: bytes, at: int, end: int) -> bool:
        held = self._calls.by_stream.get(frames.number(data, at + 5))
        length, flags = end - at - _HEADER, data[at + 4]
        if held is not None:
            payload = frames.content(data, at, end, flags)
            self._calls.data(held, payload, length, is_last=bool(flags & frames.END_STREAM))
            return False
        if self._windows.must_wait(length):
            self._state.is_blocked = True
        else:
            self._windows.left -= length
        return True


class ResponsePath(_Path):
    """From the runtime to the client."""

    def __init__(self, state: ConnectionPairState) -> None:
        super().__init__(state, state.out.to_client)

    def take(self, received: bytes) -> None:
        data = self._remainder.joined(received)
        if data is None:
            return
        start, at, size, end = 0, 0, len(data), _HEADER
        while end <= size:
            kind, flags = data[at + 3], data[at + 4]
            end += data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            if kind in _ANSWERS_BLOCKS and not flags & frames.END_HEADERS:
                end = frames.block_end(data, at)
            if end > size:
                break
            if kind <= frames.HEADERS:
                self._answer(kind, flags, data, at, end)
            elif kind == frames.WINDOW_UPDATE:
                start = self._credit(data, start, at, end)
            elif kind in _ANSWERS_LOOKED_AT:
                self._look(kind, data, at, end)
            at = end
            end += _HEADER
        self._pass(data, start, at)
        if at:
            self._state.out.begin()
        if at < size:
            self._remainder.keep(data, at, self._state.answer_bound.checked(end - at))

    def _answer(self, kind: int, flags: int, data: bytes, at: int, end: int) -> None:
        """Headers or DATA of a response."""
        by_stream = self._calls.by_stream
        if not by_stream and not flags & frames.END_STREAM:
            return
        stream = frames.number(data, at + 5)
        held = by_stream.get(stream)
        if held is not None and kind == frames.HEADERS:
            held.is_begun = True
        elif held is not None and end - at > _HEADER:
            self._calls.has_message(held)
        if flags & frames.END_STREAM:
            self._ended(stream, Ending.FAILED, is_reset=False)

    def _ended(self, stream: int, ending: Ending, *, is_reset: bool) -> None:
        """The runtime has ended this stream."""
        self._state.open.discard(stream)
        held = self._calls.by_stream.get(stream)
        if held is not None:
            self._calls.answered(held, ending, is_reset=is_reset)

    def _credit(self, data: bytes, start: int, at: int, end: int) -> int:
        """Process a WINDOW_UPDATE; returns the start of the run that the next frame belongs to."""
        if end - at != _HEADER + _NUMBER_BYTES:
            raise Malformed(ErrorCode.FRAME_SIZE_ERROR, "a WINDOW_UPDATE that is cut off")
        stream, credit = frames.number(data, at + 5), frames.number(data, at + _HEADER)
        if stream:
            held = self._calls.by_stream.get(stream)
            if held is None:
                return start
            self._calls.credited(held, credit)
        else:
            known = self._windows.credited(credit)
            if known == credit:
                return start
            if known:
                self._pass(data, start, at)
                self._state.out.tell_client(frames.window_update(0, known))
                return end
        self._pass(data, start, at)
        return end

    def _look(self, kind: int, data: bytes, at: int, end: int) -> None:
        if kind == frames.CONTINUATION:
            raise Malformed(ErrorCode.PROTOCOL_ERROR, "a continuation of nothing")
        if kind == frames.SETTINGS:
            if not data[at + 4] & frames.ACK:
                self._set(frames.settings(data, at, end))
            return
        if end - at < _HEADER + _NUMBER_BYTES:
            raise Malformed(ErrorCode.FRAME_SIZE_ERROR, f"a frame of kind {kind} that is cut off")
        said = frames.number(data, at + _HEADER)
        if kind == frames.GOAWAY:
            self._calls.beyond(said)
            return
        ending = Ending.FAILED if said == ErrorCode.REFUSED_STREAM else Ending.UNKNOWN
        self._ended(frames.number(data, at + 5), ending, is_reset=True)

    def _set(self, values: dict[int, int]) -> None:
        self._state.request_bound.widen(values)
        if (size := values.get(frames.INITIAL_WINDOW_SIZE)) is not None:
            self._windows.set_initial(size)
        if (size := values.get(frames.HEADER_TABLE_SIZE)) is not None:
            self._state.requests.allow_table(size)
