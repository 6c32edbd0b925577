"""From the client to the runtime.

The walk goes from frame to frame over what has come and passes it in the longest runs it can: where nothing has to be
taken out or put in, that is the very object that came. Only headers and DATA of held calls are looked into; no object
is made for a frame that passes.
"""

from __future__ import annotations

from typing import Final

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed, Remainder
from partage_crishim.h2.requests import Request, block
from partage_crishim.h2.state import PairState, run
from partage_crishim.verdicts import HELD

MAX_OPEN: Final = 1 << 14
"""Calls of one connection at a time."""
DRAINING: Final = b"partage\x00"
"""What our PING says. Its echo means that the client has read the GOAWAY before it."""
_HEADER: Final = frames.HEADER_BYTES
_LOOKED_AT: Final = frozenset(
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


class Upward:
    """What comes from the client."""

    def __init__(self, state: PairState) -> None:
        self.methods: list[str] = []
        self._state = state
        self._calls = state.calls
        self._windows = state.windows
        self._out = state.out
        self._remainder = Remainder()
        self._has_preface = False

    @property
    def kept_bytes(self) -> int:
        """What waits for its end, or for the runtime."""
        return len(self._remainder)

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
        """`end` is where the frame ends that begins at `at`, or its header, as far as is known."""
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
            elif kind in _LOOKED_AT:
                start = self._look(kind, data, (start, at, end))
                if state.is_blocked:
                    end = at
                    break
            at = end
            end += _HEADER
        self._pass(data, start, at)
        if at < size:
            self._remainder.keep(data, at, self._state.up_bound.checked(end - at))
        self._calls.flush_credits()

    def _look(self, kind: int, data: bytes, where: tuple[int, int, int]) -> int:
        """Looks at one frame; answers where the run begins to which the next one belongs."""
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
        """Reads the headers of a request; answers with those of a call that is to be held."""
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
        return None if is_last or request.method not in HELD else request

    def _passes(self, kind: int, data: bytes, at: int, end: int) -> bool:
        """Looks at a frame that is no HEADERS; answers whether it passes."""
        if kind == frames.DATA:
            return self._data(data, at, end)
        if kind == frames.RST_STREAM:
            stream = frames.number(data, at + 5)
            self._state.open.discard(stream)
            held = self._calls.by_stream.get(stream)
            return held is None or self._calls.reset(held)
        if kind == frames.SETTINGS:
            if not data[at + 4] & frames.ACK:
                self._state.down_bound.widen(frames.settings(data, at, end))
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

    def _pass(self, data: bytes, start: int, end: int) -> None:
        if start < end:
            self._out.to_upstream.append(run(data, start, end))
