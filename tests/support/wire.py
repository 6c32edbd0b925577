"""Protobuf's wire format written and read by hand, to compare with the product's own schema."""

from __future__ import annotations

from collections.abc import Iterator

Value = int | bytes


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: Value | str) -> bytes:
    """One field; text and messages are bytes, everything else a varint. Text with surrogates is no UTF-8."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def message(*fields: tuple[int, Value | str]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def pair(key: str | bytes, value: str | bytes) -> bytes:
    return message((1, key), (2, value))


def fields(raw: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in order."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        if tag & 7 == 0:
            number, at = _varint(raw, at)
            yield tag >> 3, number
        elif tag & 7 == 2:
            size, at = _varint(raw, at)
            yield tag >> 3, raw[at : at + size]
            at += size
        else:
            raise AssertionError(f"wire type {tag & 7}")


def all_of(raw: bytes, number: int) -> list[bytes]:
    """The values of a repeated field."""
    return [value for found, value in fields(raw) if found == number and isinstance(value, bytes)]


def pairs(raw: bytes, number: int) -> list[tuple[bytes, bytes]]:
    """A repeated field of key-value pairs."""
    return [((all_of(each, 1) or [b""])[0], (all_of(each, 2) or [b""])[0]) for each in all_of(raw, number)]


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number, at
