"""Edits an object in the API server's protobuf form without decoding it. Pure.

Some objects hold foreign text (`RawExtension`) byte for byte as it was written, whitespace included. Their JSON form
has other bytes, so a write by JSON changes fields that it means to leave alone, and is refused if those are immutable.
Protocol buffers merge: a message field that is appended after an object is merged into the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_base.kube.errors import MalformedResponse

TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_RAW: Final = 2
"""Field number of the object in the envelope."""
_METADATA, _FINALIZERS = 1, 14
"""Field numbers of the metadata in an object, and of the finalizers in the metadata."""
_TEXT: Final = 2
"""Wire type of a length-delimited field."""
_MORE, _SEVEN = 0x80, 0x7F


def with_finalizer(call: str, body: bytes, finalizer: str) -> bytes:
    """The object with one more finalizer; raises `MalformedResponse` if `body` is not an object."""
    if not body.startswith(_MAGIC):
        raise MalformedResponse(call, "the answer is not in the form that was asked for")
    added = _field(_METADATA, _field(_FINALIZERS, finalizer.encode()))
    try:
        fields = list(_fields(body, len(_MAGIC)))
    except (ValueError, IndexError) as error:
        raise MalformedResponse(call, f"the answer can't be read: {error}") from None
    if _RAW not in {number for number, _ in fields}:
        raise MalformedResponse(call, "the answer has no object in it")
    return _MAGIC + b"".join(_field(number, text + added if number == _RAW else text) for number, text in fields)


def _fields(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The fields, all of which are length-delimited, as in every envelope."""
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
    """A varint, and the position after it."""
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
