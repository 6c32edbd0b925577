"""Decodes one type from external JSON: any bytes give either the value or one `DecodeError`, and no other exception.

Size, encoding and depth are checked before anything is parsed. Unknown fields are ignored; integers must be written as
integers and stay within the bounds of their types. The good path costs two scans of the text and one typed decode; the
work of explaining an error is in `complaint`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from partage_plugins.api.limits import MAX_ANNOTATION_BYTES, MAX_DEPTH
from partage_plugins.codecs.complaint import explained
from partage_plugins.errors import DecodeError

T = TypeVar("T")

_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"{}[]")


class Reader(Generic[T]):
    """Decodes a `T`, named `what` in errors."""

    def __init__(self, what: str, type_: type[T]) -> None:
        self._what = what
        self._type = type_
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(type_)

    def read(self, raw: str | bytes) -> T:
        """Decodes a complete external text."""
        return self.read_part(guarded(raw, self._what), at="$")

    def read_part(self, data: bytes | msgspec.Raw, *, at: str) -> T:
        """Decodes a part, found at path `at`, of a text that `guarded` has already checked."""
        try:
            return self._decoder.decode(data)
        except Exception as error:  # noqa: BLE001  a kind's own type may raise anything while it is made
            raise explained(error, self._what, bytes(data), self._type, at) from None


def guarded(raw: str | bytes, what: str) -> bytes:
    """The text as bytes, if it is UTF-8 and neither too large nor too deep to parse."""
    if len(raw) > MAX_ANNOTATION_BYTES:  # before a copy is made
        raise _too_large(what, len(raw))
    try:
        if isinstance(raw, str):
            data = raw.encode()
        else:
            data = bytes(raw)  # bytes are not copied; other buffers are checked all the same
            data.decode()
    except UnicodeError:
        raise DecodeError(what, path="$", value="text that is not Unicode", allowed="UTF-8") from None
    fitting(data, what)
    # So few brackets cannot nest too deep: the common case costs two counts.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _depth(data) > MAX_DEPTH:
        raise DecodeError(what, path="$", value="nested too deep", allowed=f"a depth of {MAX_DEPTH}")
    return data


def fitting(data: bytes, what: str) -> bytes:
    """Returns the text if it is not larger than readers allow."""
    if len(data) > MAX_ANNOTATION_BYTES:
        raise _too_large(what, len(data))
    return data


def _too_large(what: str, size: int) -> DecodeError:
    return DecodeError(what, path="$", value=f"{size} bytes long", allowed=f"at most {MAX_ANNOTATION_BYTES} bytes")


def _depth(data: bytes) -> int:
    """How deep brackets nest outside strings; linear in the length for any text."""
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.split(b'"')[::2])
    depth = deepest = 0
    for bracket in outside.translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"{[" else -1
        deepest = max(deepest, depth)
    return deepest
