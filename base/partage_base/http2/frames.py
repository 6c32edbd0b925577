"""Frames of RFC 9113: reading them, and making our own.

A frame is passed on whole or not at all, so a frame of our own can be inserted between any two of them. `Remainder`
holds an incomplete frame, and joins pieces only when there are enough bytes to go on: a peer that sends single bytes
costs no more than one that sends pages.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
FRAME_BYTES: Final = 1 << 14
"""The size that every peer must accept; larger ones need its SETTINGS. kubelet and containerd never change it."""
MAX_BLOCK_BYTES: Final = 1 << 20
MAX_CONTINUATIONS: Final = 128
STREAM_MASK: Final = 0x7FFFFFFF
MAX_STREAM: Final = STREAM_MASK

DATA: Final = 0
HEADERS: Final = 1
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITY: Final = 0x20

HEADER_TABLE_SIZE: Final = 1
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5


class ErrorCode(IntEnum):
    """Error codes of the protocol."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class Malformed(Exception):
    """A peer violated the protocol; its connection ends."""

    def __init__(self, fault: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.fault = fault


class Remainder:
    """The beginning of an incomplete frame."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._need = 0

    def __len__(self) -> int:
        return len(self._kept)

    def joined(self, data: bytes) -> bytes | None:
        """All bytes, once there are enough to go on."""
        if not self._kept:
            return data
        self._kept += data
        if len(self._kept) < self._need:
            return None
        whole = bytes(self._kept)
        self._kept = bytearray()
        return whole

    def take(self) -> bytes:
        whole, self._kept = bytes(self._kept), bytearray()
        return whole

    def keep(self, data: bytes, start: int, need: int) -> None:
        """Keeps the bytes from `start`, until there are `need` of them."""
        self._kept = bytearray(data[start:])
        self._need = need


def block_end(data: bytes, start: int) -> int:
    """The end of the header block that begins with this frame; beyond `data` if it is incomplete."""
    end = start + HEADER_BYTES + length(data, start)
    for _ in range(MAX_CONTINUATIONS):
        following = end + HEADER_BYTES
        if len(data) < following:
            return following
        if data[end + 3] != CONTINUATION or number(data, end + 5) != number(data, start + 5):
            raise Malformed(ErrorCode.PROTOCOL_ERROR, "a header block that something else breaks into")
        following += length(data, end)
        if following - start > MAX_BLOCK_BYTES:
            break
        if len(data) < following or data[end + 4] & END_HEADERS:
            return following
        end = following
    raise Malformed(ErrorCode.ENHANCE_YOUR_CALM, "a header block without end")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return b"".join((len(payload).to_bytes(3, "big"), bytes((kind, flags)), stream.to_bytes(4, "big"), payload))


def window_update(stream: int, credit: int) -> bytes:
    """Lets the peer send `credit` more bytes."""
    return frame(WINDOW_UPDATE, 0, stream, credit.to_bytes(4, "big"))


def rst_stream(stream: int, fault: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream, fault.to_bytes(4, "big"))


def goaway(last: int, fault: ErrorCode, why: str = "") -> bytes:
    """Tells a peer to open no more streams on this connection."""
    return frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + fault.to_bytes(4, "big") + why.encode())


def length(data: bytes | bytearray, at: int) -> int:
    """The payload's length of the frame that begins here."""
    return data[at] << 16 | data[at + 1] << 8 | data[at + 2]


def number(data: bytes, at: int) -> int:
    """A 31-bit number, such as a stream's or a window's."""
    return int.from_bytes(data[at : at + 4], "big") & STREAM_MASK


def ping(payload: bytes) -> bytes:
    """Requests an echo of these eight bytes."""
    return frame(PING, 0, 0, payload)


def data_frame(stream: int, payload: bytes | memoryview, *, is_last: bool) -> bytes:
    return frame(DATA, END_STREAM if is_last else 0, stream, bytes(payload))


def content(data: bytes, start: int, end: int, flags: int) -> bytes:
    """The payload of DATA or a header frame, without its padding."""
    start += HEADER_BYTES
    if not flags & PADDED:
        return data[start:end]
    if start == end or (padding := data[start]) > end - start - 1:
        raise Malformed(ErrorCode.PROTOCOL_ERROR, "a frame with more padding than content")
    return data[start + 1 : end - padding]


def settings(data: bytes, start: int, end: int) -> dict[int, int]:
    """The settings of a SETTINGS frame; the last one counts if it has one twice."""
    if (end - start - HEADER_BYTES) % 6:
        raise Malformed(ErrorCode.FRAME_SIZE_ERROR, "a SETTINGS frame that is cut off")
    each = range(start + HEADER_BYTES, end, 6)
    return {int.from_bytes(data[at : at + 2], "big"): int.from_bytes(data[at + 2 : at + 6], "big") for at in each}
