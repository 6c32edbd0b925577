"""A gRPC message: one byte that says whether it is compressed, four for its length, and itself.

What can't be read is refused as grpc-go's own server refuses it, in its words where it has some.
"""

from __future__ import annotations

import zlib
from typing import Final

from msgspec import Struct

from partage_crishim.verdicts import Code

PREFIX_BYTES: Final = 5
MAX_MESSAGE_BYTES: Final = 16 << 20
"""As containerd's server has it."""
_GZIP: Final = 31
_PLAIN: Final = frozenset({"", "identity"})


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
