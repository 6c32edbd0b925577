"""Frames of RFC 9113: what we read of them, and those that we make.

A frame is passed whole or not at all, so a stream of ours can be put between any two of them. What is not whole yet is
kept by `Remainder`, which joins pieces only when there is enough to go on: a peer that sends single bytes costs no more
than one that sends pages.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
FRAME_BYTES: Final = 1 << 14
"""What every peer must take; more only from one that says so. kubelet and containerd never do."""
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
    """A peer said what no peer may say; its connection ends."""

    def __init__(self, fault: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.fault = fault


class Remainder:
    """The beginning of a frame whose end has not come."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._need = 0

    def __len__(self) -> int:
        return len(self._kept)

    def joined(self, data: bytes) -> bytes | None:
        """What there is, once it is enough to go on."""
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
        """Keeps what follows `start`, until there are `need` bytes of it."""
        self._kept = bytearray(data[start:])
        self._need = need


def block_end(data: bytes, start: int) -> int:
    """Where the header block ends that begins with this frame; beyond `data` where it is not all there."""
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
    """Lets the peer send so many more bytes."""
    return frame(WINDOW_UPDATE, 0, stream, credit.to_bytes(4, "big"))


def rst_stream(stream: int, fault: ErrorCode) -> bytes:
    """Ends a stream without a word."""
    return frame(RST_STREAM, 0, stream, fault.to_bytes(4, "big"))


def goaway(last: int, fault: ErrorCode, why: str = "") -> bytes:
    """Asks a peer to open no more streams here."""
    return frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + fault.to_bytes(4, "big") + why.encode())


def length(data: bytes | bytearray, at: int) -> int:
    """The bytes of the payload of the frame that begins here."""
    return data[at] << 16 | data[at + 1] << 8 | data[at + 2]


def number(data: bytes, at: int) -> int:
    """31 bits, such as a stream's number or a credit."""
    return int.from_bytes(data[at : at + 4], "big") & STREAM_MASK


def ping(payload: bytes) -> bytes:
    """Asks for an echo of these eight bytes."""
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
    """What a SETTINGS frame sets; the last one counts where it sets a thing twice."""
    if (end - start - HEADER_BYTES) % 6:
        raise Malformed(ErrorCode.FRAME_SIZE_ERROR, "a SETTINGS frame that is cut off")
    each = range(start + HEADER_BYTES, end, 6)
    return {int.from_bytes(data[at : at + 2], "big"): int.from_bytes(data[at + 2 : at + 6], "big") for at in each}
