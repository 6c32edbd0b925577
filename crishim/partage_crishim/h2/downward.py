"""From the runtime to the client.

Everything passes but credits that are not the client's. Headers of answers are not decoded: that a call has ended, and
whether it brought a message, can be told from frames.
"""

from __future__ import annotations

from typing import Final

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed, Remainder
from partage_crishim.h2.held import HeldStream
from partage_crishim.h2.state import PairState, run
from partage_crishim.verdicts import Ending

_HEADER: Final = frames.HEADER_BYTES
_NUMBER_BYTES: Final = 4
_BLOCKS: Final = frozenset({frames.HEADERS, frames.PUSH_PROMISE})
_LOOKED_AT: Final = frozenset({frames.RST_STREAM, frames.SETTINGS, frames.GOAWAY, frames.CONTINUATION})


class Downward:
    """What comes from the runtime."""

    def __init__(self, state: PairState) -> None:
        self._state = state
        self._calls = state.calls
        self._windows = state.windows
        self._out = state.out
        self._remainder = Remainder()

    @property
    def kept_bytes(self) -> int:
        """What waits for its end, or for the runtime."""
        return len(self._remainder)

    def take(self, data: bytes) -> None:
        whole = self._remainder.joined(data)
        if whole is not None:
            self._walk(whole)

    def _walk(self, data: bytes) -> None:
        start, at, size, end = 0, 0, len(data), _HEADER
        while end <= size:
            kind, flags = data[at + 3], data[at + 4]
            end += data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            if kind in _BLOCKS and not flags & frames.END_HEADERS:
                end = frames.block_end(data, at)
            if end > size:
                break
            if kind <= frames.HEADERS:
                self._answer(kind, flags, data, at, end)
            elif kind == frames.WINDOW_UPDATE:
                start = self._credit(data, start, at, end)
            elif kind in _LOOKED_AT:
                self._look(kind, data, at, end)
            at = end
            end += _HEADER
        self._pass(data, start, at)
        if at:
            self._out.begin()
        if at < size:
            self._remainder.keep(data, at, self._state.down_bound.checked(end - at))

    def _answer(self, kind: int, flags: int, data: bytes, at: int, end: int) -> None:
        """Headers or DATA of an answer."""
        by_stream = self._calls.by_stream
        if not by_stream and not flags & frames.END_STREAM:
            return
        stream = frames.number(data, at + 5)
        held = by_stream.get(stream)
        if held is not None:
            self._answer_of_held(held, kind, end - at - _HEADER)
        if flags & frames.END_STREAM:
            self._state.answered(stream, Ending.FAILED, is_reset=False)

    def _answer_of_held(self, held: HeldStream, kind: int, length: int) -> None:
        if kind == frames.HEADERS:
            held.is_begun = True
        elif length:
            self._calls.has_message(held)

    def _credit(self, data: bytes, start: int, at: int, end: int) -> int:
        """Takes note of credits; answers where the run begins to which the next frame belongs."""
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
                self._out.tell_client(frames.window_update(0, known))
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
        self._state.answered(frames.number(data, at + 5), ending, is_reset=True)

    def _set(self, values: dict[int, int]) -> None:
        self._state.up_bound.widen(values)
        if (size := values.get(frames.INITIAL_WINDOW_SIZE)) is not None:
            self._windows.set_initial(size)
        if (size := values.get(frames.HEADER_TABLE_SIZE)) is not None:
            self._state.requests.allow_table(size)

    def _pass(self, data: bytes, start: int, end: int) -> None:
        if start < end:
            self._out.to_client.append(run(data, start, end))
