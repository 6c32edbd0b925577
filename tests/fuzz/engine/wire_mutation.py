"""Changes one message of the protobuf wire format, in ways in which decoders of different languages might differ.

It knows no schema: anything that parses as a message may be one. Messages are split in two that decoders merge again;
fields are repeated, reordered, encoded with another wire type or in more bytes than needed; numbers have 64 bits, text
is not UTF-8, and unknown fields and groups are inserted.
"""

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

_VARINT, _EIGHT, _BYTES, _GROUP, _END, _FOUR = range(6)
_SIZES: Final = {_EIGHT: 8, _FOUR: 4}
_MOST_DEPTH: Final = 30
_LONGEST_VARINT: Final = 10
_NUMBERS: Final = (0, 1, 2, 3, (1 << 31) - 1, 1 << 31, (1 << 32) + 2, (1 << 32) + 3, 1 << 63, (1 << 64) - 1)
_TEXTS: Final = (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xc3\xa9", b"\0")
_PADDINGS: Final = (1, 2, 8)


class Field(NamedTuple):
    number: int
    type: int
    value: int | bytes
    padding: int = 0
    """Extra bytes in the encoding of the length or number."""


class NoMessage(ValueError):
    """The bytes are not a message."""


def change_message(data: bytes, rng: random.Random) -> bytes:
    """The same message with one change; other bytes are unchanged."""
    try:
        fields = read(data)
    except NoMessage:
        return data
    return write(_changed(fields, rng, _MOST_DEPTH))


def read(data: bytes) -> list[Field]:
    """The fields in order; a group is one field. Raises `NoMessage`."""
    found: list[Field] = []
    at = 0
    while at < len(data):
        at = _field(data, at, found)
    return found


def write(fields: Sequence[Field]) -> bytes:
    return b"".join(map(_written, fields))


def varint(number: int, padding: int = 0) -> bytes:
    """A varint with padding up to the length that decoders accept."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    for _ in range(min(padding, _LONGEST_VARINT - len(out))):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def _changed(fields: list[Field], rng: random.Random, depth: int) -> list[Field]:
    """A change here, or within one of the fields."""
    if not fields:
        return [_unknown(rng)]
    at = rng.randrange(len(fields))
    inner = _inner(fields[at])
    if inner and depth and rng.random() < 0.7:
        value = write(_changed(inner, rng, depth - 1))
        return [*fields[:at], fields[at]._replace(value=value), *fields[at + 1 :]]
    return rng.choice((_repeat, _split, _shuffle, _retype, _pad, _other_value, _drop, _add))(fields, at, rng)


def _repeat(fields: list[Field], at: int, rng: random.Random) -> list[Field]:
    """Repeats a field, unchanged or with its default value, before or after it."""
    field = fields[at]
    empty = b"" if field.type == _BYTES else 0
    again = field._replace(value=empty) if field.type in {_BYTES, _VARINT} and rng.random() < 0.5 else field
    place = rng.choice((at, at + 1, len(fields)))
    return [*fields[:place], again, *fields[place:]]


def _split(fields: list[Field], at: int, rng: random.Random) -> list[Field]:
    """Splits one message into two parts."""
    inner = _inner(fields[at])
    cut = rng.randint(0, len(inner))
    parts = [fields[at]._replace(value=write(part)) for part in (inner[:cut], inner[cut:])]
    return [*fields[:at], *parts, *fields[at + 1 :]] if inner else fields


def _shuffle(fields: list[Field], _at: int, rng: random.Random) -> list[Field]:
    return rng.sample(fields, len(fields))


def _retype(fields: list[Field], at: int, rng: random.Random) -> list[Field]:
    """Another wire type than the field's, instead of it or beside it."""
    values: dict[int, int | bytes] = {
        _VARINT: rng.choice(_NUMBERS),
        _EIGHT: bytes(8),
        _BYTES: rng.choice(_TEXTS),
        _GROUP: b"",
        _FOUR: bytes(4),
    }
    other = rng.choice([each for each in values if each != fields[at].type])
    return [*fields[: at + rng.randint(0, 1)], Field(fields[at].number, other, values[other]), *fields[at + 1 :]]


def _pad(fields: list[Field], at: int, rng: random.Random) -> list[Field]:
    return [*fields[:at], fields[at]._replace(padding=rng.choice(_PADDINGS)), *fields[at + 1 :]]


def _other_value(fields: list[Field], at: int, rng: random.Random) -> list[Field]:
    field = fields[at]
    if isinstance(field.value, int):
        value: int | bytes = rng.choice(_NUMBERS)
    else:
        value = field.value + rng.choice(_TEXTS) if field.type == _BYTES else field.value
    return [*fields[:at], field._replace(value=value), *fields[at + 1 :]]


def _drop(fields: list[Field], at: int, _rng: random.Random) -> list[Field]:
    return [*fields[:at], *fields[at + 1 :]]


def _add(fields: list[Field], at: int, rng: random.Random) -> list[Field]:
    return [*fields[:at], _unknown(rng), *fields[at:]]


def _unknown(rng: random.Random) -> Field:
    """A field that no schema has."""
    number = rng.randint(200, 204)
    inner = write([Field(1, _VARINT, 1), Field(2, _BYTES, b"\xff")])
    return rng.choice(
        (
            Field(number, _VARINT, rng.choice(_NUMBERS)),
            Field(number, _EIGHT, b"eight by"),
            Field(number, _BYTES, b"\xff\0"),
            Field(number, _GROUP, inner),
            Field(number, _FOUR, b"four"),
        )
    )


def _inner(field: Field) -> list[Field]:
    """The fields of an embedded message; empty if it is none."""
    if field.type not in {_BYTES, _GROUP} or not isinstance(field.value, bytes):
        return []
    try:
        return read(field.value)
    except NoMessage:
        return []


def _field(data: bytes, at: int, found: list[Field], depth: int = 0) -> int:
    """Reads one field; returns where the next one begins."""
    key, at = _number(data, at)
    number, type_ = key >> 3, key & 7
    if type_ == _VARINT:
        value, at = _number(data, at)
        found.append(Field(number, type_, value))
        return at
    if type_ == _GROUP and depth < _MOST_DEPTH:
        end, after = _end_of_group(data, at, number, depth)
        found.append(Field(number, type_, data[at:end]))
        return after
    if type_ == _BYTES:
        size, at = _number(data, at)
    elif type_ in _SIZES:
        size = _SIZES[type_]
    else:
        raise NoMessage(type_)
    if at + size > len(data):
        raise NoMessage(size)
    found.append(Field(number, type_, data[at : at + size]))
    return at + size


def _end_of_group(data: bytes, at: int, number: int, depth: int) -> tuple[int, int]:
    """Where the group's content ends, and where the next field begins."""
    inside: list[Field] = []
    while True:
        key, after = _number(data, at)
        if key == number << 3 | _END:
            return at, after
        at = _field(data, at, inside, depth + 1)


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(data):
            break
        byte = data[at + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at + index + 1
    raise NoMessage(at)


def _written(field: Field) -> bytes:
    key = varint(field.number << 3 | field.type)
    if isinstance(field.value, int):
        return key + varint(field.value, field.padding)
    if field.type == _GROUP:
        return key + field.value + varint(field.number << 3 | _END)
    return key + (varint(len(field.value), field.padding) if field.type == _BYTES else b"") + field.value
