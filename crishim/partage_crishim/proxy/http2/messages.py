"""gRPC on the wire: messages to read, and the status of responses that we generate.

A message is one byte that flags compression, four bytes of length, and the body. Unreadable input is rejected as
grpc-go's own server does, with the same error text where it has one. Our responses have no message. All their fields
are literals that do not change the header table, and `:status` refers to the static table, so the client's decoder
stays in the state that the runtime assumes.
"""

from __future__ import annotations

import zlib
from typing import Final
from urllib.parse import quote

from hpack import Encoder, NeverIndexedHeaderTuple
from msgspec import Struct

from partage_base.http2 import frames
from partage_crishim.decisions import Code

PREFIX_BYTES: Final = 5
MAX_MESSAGE_BYTES: Final = 16 << 20
"""The limit of containerd's server."""
_GZIP: Final = 31
_PLAIN: Final = frozenset({"", "identity"})
_AS_IT_IS: Final = "".join(chr(each) for each in range(0x20, 0x7F) if each != ord("%"))
_MAX_SENTENCE: Final = 4096


class Unreadable(Exception):
    """A call that is answered with this code and sentence; the runtime never sees it."""

    def __init__(self, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Message(Struct, frozen=True):
    """A request as received."""

    is_compressed: bool
    body: bytes

    @property
    def framed(self) -> bytes:
        """The message with its gRPC prefix."""
        return bytes((self.is_compressed,)) + len(self.body).to_bytes(4, "big") + self.body


NO_MESSAGE: Final = Message(False, b"")


class MessageCollector:
    """Gathers the DATA of one call."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def need(self) -> int | None:
        """The total number of bytes, once known."""
        if len(self._parts) < PREFIX_BYTES:
            return None
        return PREFIX_BYTES + int.from_bytes(self._parts[1:PREFIX_BYTES], "big")

    @property
    def is_compressed(self) -> bool:
        """Whether the compression flag is set."""
        return bytes(self._parts[:1]) == b"\1"

    def add(self, part: bytes, *, is_last: bool) -> None:
        """Append bytes; raises `Unreadable` as soon as they cannot form exactly one message."""
        self._parts += part
        need = self.need
        if need is not None:
            size = need - PREFIX_BYTES
            if self._parts[0] > 1:
                raise Unreadable(Code.INTERNAL, f"grpc: received unexpected payload format {self._parts[0]}")
            if size > MAX_MESSAGE_BYTES:
                sizes = f"({size} vs. {MAX_MESSAGE_BYTES})"
                raise Unreadable(Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max {sizes}")
            if len(self._parts) > need:
                raise Unreadable(Code.INTERNAL, "grpc: received more than one message for a call that takes one")
        if is_last and len(self._parts) != need:
            raise Unreadable(Code.INTERNAL, "grpc: the call ended before its message did: unexpected EOF")

    def whole(self) -> Message:
        """The message, after its last byte; empties the buffer."""
        message = Message(self.is_compressed, bytes(memoryview(self._parts)[PREFIX_BYTES:]))
        self._parts = bytearray()
        return message


def plain(message: Message, encoding: str) -> bytes:
    """The request, decompressed."""
    if not message.is_compressed:
        return message.body
    if encoding in _PLAIN:
        raise Unreadable(Code.INTERNAL, "grpc: compressed flag set with identity or empty encoding")
    if encoding != "gzip":
        raise Unreadable(Code.UNIMPLEMENTED, f'grpc: Decompressor is not installed for grpc-encoding "{encoding}"')
    try:
        return _gunzipped(message.body)
    except (zlib.error, EOFError) as error:
        raise Unreadable(Code.INTERNAL, f"grpc: failed to decompress the received message: {error}") from error


def _gunzipped(packed: bytes) -> bytes:
    """All members of a gzip file, as Go's reader accepts them."""
    parts: list[bytes] = []
    left = MAX_MESSAGE_BYTES
    while packed:
        member = zlib.decompressobj(_GZIP)
        parts.append(member.decompress(packed, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise Unreadable(Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max {MAX_MESSAGE_BYTES}")
        if not member.eof:
            raise EOFError("unexpected EOF")
        packed = member.unused_data
    return b"".join(parts)


def answer(stream: int, code: int, sentence: str, *, is_begun: bool = False) -> bytes:
    """Frames that end a call with this status; `is_begun` if the response's first headers were already forwarded."""
    fields = [] if is_begun else [(":status", "200"), ("content-type", "application/grpc")]
    fields += [("grpc-status", str(code)), ("grpc-message", quote(sentence[:_MAX_SENTENCE], safe=_AS_IT_IS))]
    block = Encoder().encode([NeverIndexedHeaderTuple(*each) for each in fields], huffman=False)
    return frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, block)
