"""Answers clients while the runtime is unavailable: every call fails at once, as it would directly at a dead runtime.

Refusing connections would do that too, but clients then back off longer and longer, and reconnect long after the
runtime is back. A connected client can be sent GOAWAY, which makes it reconnect at once.

No header is decoded here, since every call gets the same response.
"""

from __future__ import annotations

from typing import Final

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed, Remainder
from partage_crishim.decisions import Code
from partage_crishim.proxy.http2.messages import answer

_HEADER: Final = frames.HEADER_BYTES


class UnavailableResponder:
    def __init__(self, sentence: str) -> None:
        self.to_client: list[bytes] = [frames.frame(frames.SETTINGS, 0, 0, b"")]
        self.is_over = False
        self._sentence = sentence
        self._remainder = Remainder()
        self._has_preface = False
        self._last = 0

    def from_client(self, data: bytes) -> None:
        if self.is_over:
            return
        try:
            whole = self._remainder.joined(data)
            if whole is not None:
                self._walk(whole)
        except Malformed as error:
            self._end(error.fault)

    def leave(self) -> None:
        """Make the client reconnect, since the runtime is back; the client may repeat calls that it has just made."""
        self._end(ErrorCode.NO_ERROR)

    def _end(self, fault: ErrorCode) -> None:
        self.is_over = True
        self.to_client.append(frames.goaway(self._last, fault))

    def _walk(self, data: bytes) -> None:
        at, need = self._begin(data)
        while not need:
            if len(data) - at < _HEADER:
                need = _HEADER
                break
            length = frames.length(data, at)
            if length > frames.FRAME_BYTES:
                raise Malformed(ErrorCode.FRAME_SIZE_ERROR, "a frame that is too large")
            end = at + _HEADER + length
            if len(data) < end:
                need = _HEADER + length
                break
            self._frame(data, at, end)
            at = end
        if at < len(data):
            self._remainder.keep(data, at, need)

    def _begin(self, data: bytes) -> tuple[int, int]:
        """The length of the preface in `data`, and the bytes still needed for it (0 if complete)."""
        preface = 0 if self._has_preface else len(frames.PREFACE)
        if data[:preface] != frames.PREFACE[: min(preface, len(data))]:
            raise Malformed(ErrorCode.PROTOCOL_ERROR, "the client does not speak HTTP/2")
        if len(data) < preface:
            return 0, preface
        self._has_preface = True
        return preface, 0

    def _frame(self, data: bytes, at: int, end: int) -> None:
        kind, flags, stream = data[at + 3], data[at + 4], frames.number(data, at + 5)
        if kind == frames.HEADERS and stream > self._last:
            self._last = stream
            self.to_client.append(answer(stream, Code.UNAVAILABLE.value, self._sentence))
            if not flags & frames.END_STREAM:
                self.to_client.append(frames.rst_stream(stream, ErrorCode.NO_ERROR))
        elif kind == frames.DATA and end - at > _HEADER:
            self.to_client.append(frames.window_update(0, end - at - _HEADER))
        elif kind in (frames.SETTINGS, frames.PING) and not flags & frames.ACK:
            echo = data[at + _HEADER : end] if kind == frames.PING else b""
            self.to_client.append(frames.frame(kind, frames.ACK, 0, echo))
