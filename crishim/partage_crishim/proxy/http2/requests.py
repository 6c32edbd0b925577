"""Reads header blocks of requests.

Every block of the connection is decoded, in order, since each may change the table that later ones refer to. Only the
method and the message encoding are used.

Clients such as grpc-go send the same block repeatedly, made only of references into the table. Such a block cannot
change the table, so it keeps its meaning until a block arrives that could.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hpack import Decoder
from hpack.exceptions import HPACKError

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed

MAX_TABLE_BYTES: Final = 1 << 20
_PRIORITY_BYTES: Final = 5
_REMEMBERED: Final = 64
_REFERENCE: Final = 0x80
_LONG_REFERENCE: Final = 0xFF


@dataclass(frozen=True)
class Request:
    """What a header block says about a call."""

    method: str
    encoding: str


class Requests:
    """The decoder of one connection."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=frames.MAX_BLOCK_BYTES)
        self._remembered: dict[bytes, Request] = {}

    def allow_table(self, size: int) -> None:
        """The runtime allows the client a table of this size.

        Never reduced: requests that the client sent before it received the new size may still be in transit.
        """
        if size > MAX_TABLE_BYTES:
            raise Malformed(
                ErrorCode.ENHANCE_YOUR_CALM, f"a table of {size} bytes for headers is more than we can follow"
            )
        self._decoder.max_allowed_table_size = max(self._decoder.max_allowed_table_size, size)

    def read(self, block: bytes) -> Request:
        """Decode a block; raises `Malformed` if it cannot be read, after which no later block can."""
        known = self._remembered.get(block)
        if known is not None:
            return known
        try:
            fields = self._decoder.decode(block, raw=True)
        except (HPACKError, ValueError, IndexError, OverflowError) as error:
            raise Malformed(ErrorCode.COMPRESSION_ERROR, f"headers that can't be read: {error}") from error
        request = _request(fields)
        if not _only_references(block) or len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        else:
            self._remembered[block] = request
        return request


def block(data: bytes, start: int, end: int) -> bytes:
    """The header block of a HEADERS frame and its CONTINUATION frames."""
    flags, following = data[start + 4], start + frames.HEADER_BYTES + frames.length(data, start)
    part = frames.content(data, start, following, flags)
    if flags & frames.PRIORITY:
        if len(part) < _PRIORITY_BYTES:
            raise Malformed(ErrorCode.FRAME_SIZE_ERROR, "a HEADERS frame that is cut off")
        part = part[_PRIORITY_BYTES:]
    parts = [part]
    while following < end:
        start, following = following, following + frames.HEADER_BYTES + frames.length(data, following)
        parts.append(data[start + frames.HEADER_BYTES : following])
    return b"".join(parts)


def _request(fields: Iterable[tuple[bytes, bytes]]) -> Request:
    method = encoding = b""
    for name, value in fields:
        if name == b":path":
            method = bytes(value)
        elif name == b"grpc-encoding":
            encoding = bytes(value)
    text = method.decode(errors="replace")
    return Request(text if text.startswith("/") else f"/{text}", encoding.decode(errors="replace"))


def _only_references(block: bytes) -> bool:
    return all(_REFERENCE <= byte < _LONG_REFERENCE for byte in block)
