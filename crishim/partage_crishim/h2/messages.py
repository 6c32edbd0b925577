"""gRPC on the wire: messages that are read, and the status that we answer with ourselves.

A message is one byte that says whether it is compressed, four for its length, and itself. What can't be read is refused
as grpc-go's own server refuses it, in its words where it has some. An answer of ours has no message. All its fields are
literals that touch no table, and `:status` is a reference into the static one, so the client's decoder stays as the
runtime believes it to be.
"""

from __future__ import annotations

import zlib
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from partage_base.http2 import frames
from partage_crishim.verdicts import Code

PREFIX_BYTES: Final = 5
MAX_MESSAGE_BYTES: Final = 16 << 20
"""As containerd's server has it."""
_GZIP: Final = 31
_PLAIN: Final = frozenset({"", "identity"})
_OK: Final = b"\x88"
"""`:status: 200`, by its number in the static table."""
_AS_IT_IS: Final = "".join(chr(each) for each in range(0x20, 0x7F) if each != ord("%"))
_LONG: Final = 127
_MAX_SENTENCE: Final = 4096


class Unreadable(Exception):
    """Is answered with this code and sentence; the runtime never sees the call."""

    def __init__(self, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Message(Struct, frozen=True):
    """A request as it came."""

    is_compressed: bool
    body: bytes

    @property
    def framed(self) -> bytes:
        """As it goes on the wire."""
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
        """How many bytes there will be, once that is known."""
        if len(self._parts) < PREFIX_BYTES:
            return None
        return PREFIX_BYTES + int.from_bytes(self._parts[1:PREFIX_BYTES], "big")

    @property
    def is_compressed(self) -> bool:
        """Whether it says so of itself."""
        return bytes(self._parts[:1]) == b"\1"

    def add(self, part: bytes, *, is_last: bool) -> None:
        """The next bytes; raises `Unreadable` as soon as they can't become one message."""
        self._parts += part
        need = self.need
        if need is not None:
            self._check(need)
        if is_last and len(self._parts) != need:
            raise Unreadable(Code.INTERNAL, "grpc: the call ended before its message did: unexpected EOF")

    def whole(self) -> Message:
        """The message, after the last byte; keeps nothing."""
        message = Message(self.is_compressed, bytes(memoryview(self._parts)[PREFIX_BYTES:]))
        self._parts = bytearray()
        return message

    def _check(self, need: int) -> None:
        size = need - PREFIX_BYTES
        if self._parts[0] > 1:
            raise Unreadable(Code.INTERNAL, f"grpc: received unexpected payload format {self._parts[0]}")
        if size > MAX_MESSAGE_BYTES:
            sizes = f"({size} vs. {MAX_MESSAGE_BYTES})"
            raise Unreadable(Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max {sizes}")
        if len(self._parts) > need:
            raise Unreadable(Code.INTERNAL, "grpc: received more than one message for a call that takes one")


def plain(message: Message, encoding: str) -> bytes:
    """The request itself, out of its compression."""
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
    """All members of a gzip file, as Go's reader takes them."""
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
    """Ends a call with this status; `is_begun` where its first headers have been passed already."""
    shown = quote(sentence[:_MAX_SENTENCE], safe=_AS_IT_IS).encode()
    begin = b"" if is_begun else _OK + _field(b"content-type", b"application/grpc")
    block = b"".join((begin, _field(b"grpc-status", b"%d" % code), _field(b"grpc-message", shown)))
    return frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, block)


def _field(name: bytes, value: bytes) -> bytes:
    return b"".join((b"\x00", _length(name), name, _length(value), value))


def _length(text: bytes) -> bytes:
    """HPACK's integer with a prefix of seven bits."""
    size = len(text)
    if size < _LONG:
        return bytes((size,))
    size -= _LONG
    parts = [_LONG]
    while size >= 1 << 7:
        parts.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*parts, size))
