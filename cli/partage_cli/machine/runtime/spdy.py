"""Frames of SPDY/3.1, as far as a runtime's streams need them: kubelet and kubectl speak it to runtimes. Pure.

The peers are all one Go library, which knows no flow control and takes headers without the protocol's dictionary. So
neither is here, and the headers of answers are not read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

_HEAD: Final = Struct(">II")
_SYN_STREAM: Final = Struct(">IIH")
_NUMBER: Final = Struct(">I")
_CONTROL: Final = 1 << 31
_VERSION: Final = 3 << 16
_LAST: Final = 1
_LENGTH_BITS: Final = 24
_MOST_BYTES: Final = 1 << 20
_SYN, _REPLY, _RST, _PING, _GOAWAY = 1, 2, 3, 6, 7
_OF_STREAMS: Final = (_REPLY, _RST)


class FrameTooLarge(Exception):
    """What the peer sends is not taken into memory."""

    def __str__(self) -> str:
        return "it sent a frame that is too large"


class Data(NamedTuple):
    stream: int
    data: bytes
    is_last: bool


class Reply(NamedTuple):
    """The peer took a stream; what it was sent before is lost."""

    stream: int


class Reset(NamedTuple):
    """The peer ended a stream."""

    stream: int


class Ping(NamedTuple):
    answer: bytes


class GoAway(NamedTuple):
    """The peer ends the connection."""


Frame = Data | Reply | Reset | Ping | GoAway


class Sender:
    """Makes the frames of one side of a connection."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj()
        self._next = 1

    def opening(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """A new stream's number, and the frame that opens it."""
        stream, self._next = self._next, self._next + 2
        block = _NUMBER.pack(len(headers))
        for text in (text for pair in headers.items() for text in pair):
            block += _NUMBER.pack(len(text)) + text.encode("ascii")
        block = self._headers.compress(block) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        body = _SYN_STREAM.pack(stream, 0, 0) + block
        return stream, _HEAD.pack(_CONTROL | _VERSION | _SYN, len(body)) + body

    @staticmethod
    def data(stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        return _HEAD.pack(stream, is_last << _LENGTH_BITS | len(data)) + data


class Receiver:
    """Reads the peer's frames, in whatever pieces they come."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole by now, of kinds that matter. Raises `FrameTooLarge`."""
        self._rest += data
        while len(self._rest) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._rest)
            flags, length = second >> _LENGTH_BITS, second & ((1 << _LENGTH_BITS) - 1)
            if length > _MOST_BYTES:
                raise FrameTooLarge
            end = _HEAD.size + length
            if len(self._rest) < end:
                return
            whole = bytes(self._rest[:end])
            del self._rest[:end]
            frame = _frame(first, flags, whole)
            if frame is not None:
                yield frame


def _frame(first: int, flags: int, whole: bytes) -> Frame | None:
    body = whole[_HEAD.size :]
    if not first & _CONTROL:
        return Data(first, body, is_last=bool(flags & _LAST))
    kind = first & 0xFFFF
    if kind in _OF_STREAMS and len(body) >= _NUMBER.size:
        stream: int = _NUMBER.unpack_from(body)[0]
        return Reply(stream) if kind == _REPLY else Reset(stream)
    if kind == _PING:
        return Ping(whole)
    return GoAway() if kind == _GOAWAY else None
