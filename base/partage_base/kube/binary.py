"""Objects in the API server's binary form, as far as one is changed without being read. Pure.

Some objects hold text of others' (`RawExtension`), byte for byte as it was written, blanks included. The JSON of such
an object is not the same bytes, so a write that goes by JSON changes what it means to leave alone, and is refused where
that may not change. Protocol buffers add up: a field that is written again behind an object is joined with the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_base.kube.errors import Nonsense

TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_RAW: Final = 2
"""Field of the envelope: the object."""
_METADATA, _FINALIZERS = 1, 14
"""Fields of all objects, and of their metadata."""
_TEXT: Final = 2
"""The wire's word for what has a length."""
_MORE, _SEVEN = 0x80, 0x7F


def with_finalizer(call: str, body: bytes, finalizer: str) -> bytes:
    """The object with one finalizer more; raises `Nonsense` where this is none."""
    if not body.startswith(_MAGIC):
        raise Nonsense(call, "the answer is not in the form that was asked for")
    added = _field(_METADATA, _field(_FINALIZERS, finalizer.encode()))
    try:
        fields = list(_fields(body, len(_MAGIC)))
    except (ValueError, IndexError) as error:
        raise Nonsense(call, f"the answer can't be read: {error}") from None
    if _RAW not in {number for number, _ in fields}:
        raise Nonsense(call, "the answer has no object in it")
    return _MAGIC + b"".join(_field(number, text + added if number == _RAW else text) for number, text in fields)


def _fields(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """All that has a length, as everything in an envelope does."""
    while at < len(body):
        tag, at = _number(body, at)
        size, at = _number(body, at)
        if tag & 7 != _TEXT or at + size > len(body):
            raise ValueError(f"a field of sort {tag & 7} with {size} bytes")
        yield tag >> 3, body[at : at + size]
        at += size


def _field(number: int, content: bytes) -> bytes:
    return _written(number << 3 | _TEXT) + _written(len(content)) + content


def _written(number: int) -> bytes:
    found = bytearray()
    while number > _SEVEN:
        found.append(number & _SEVEN | _MORE)
        number >>= 7
    found.append(number)
    return bytes(found)


def _number(body: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next thing begins."""
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & _SEVEN) << shift
        if byte < _MORE:
            return value, at
        shift += 7
        if shift > 63:  # noqa: PLR2004
            raise ValueError("a number that has no end")
