"""What we answer ourselves: a gRPC status without a message.

All fields are literals that touch no table, and `:status` is a reference into the static one, so the client's decoder
is left as the runtime believes it to be.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from partage_base.http2 import frames

_OK: Final = b"\x88"
"""`:status: 200`, by its number in the static table."""
_AS_IT_IS: Final = "".join(chr(each) for each in range(0x20, 0x7F) if each != ord("%"))
_LONG: Final = 127
_MAX_SENTENCE: Final = 4096


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
