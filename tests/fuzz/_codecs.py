"""What the targets of the codecs share: how an answer is checked, whichever decoder gave it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from partage_plugins.errors import DecodeError

T = TypeVar("T")
_BORDERS = (b"1.0", b"1e999", b"-1", b"9" * 20, b"9" * 4301, b"\\ud800", b"\\u0000")
JSON_WORDS = (*_BORDERS, b'{"', b'":', b"[", b"]", b"null")


def refused(error: DecodeError) -> str:
    """Checks that a refusal is one short line; answers which kind of refusal it is."""
    said = str(error)
    if len(said) >= 600 or not said.isprintable():
        raise AssertionError(f"an error that is no short, printable line: {said!r}")
    said.encode()
    return f"refused: {error.path.split('[')[0]}: {error.allowed[:40]}"


def round_trip(
    data: bytes, decode: Callable[[bytes], T], encode: Callable[[T], Any], told: Callable[[T], Iterable[object]]
) -> str:
    """Reads, and if that works writes and reads again: the same text, and the same as `told` of it."""
    try:
        decoded = decode(data)
    except DecodeError as error:
        return refused(error)
    is_json(data)
    text = encode(decoded)
    again = decode(text)
    if encode(again) != text:
        raise AssertionError(f"written as {text!r}, then as {encode(again)!r}")
    if list(told(again)) != list(told(decoded)):
        raise AssertionError(f"it changed on its way: {decoded!r}, then {again!r}")
    return "decoded"


def is_json(data: bytes) -> None:
    """Checks that the standard library takes for JSON what we took for it."""
    json.loads(data.decode(), parse_constant=_no_constant, parse_int=str)  # integers may be too long for Python


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} was accepted as JSON")
