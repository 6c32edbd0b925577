"""What the targets of the codecs share: how an answer is checked, whichever decoder gave it."""

from __future__ import annotations

import json
from typing import Any

from partage_plugins.errors import DecodeError

_BORDERS = (b"1.0", b"1e999", b"-1", b"9" * 20, b"9" * 4301, b"\\ud800", b"\\u0000")
JSON_WORDS = (*_BORDERS, b'{"', b'":', b"[", b"]", b"null")


def refused(error: DecodeError) -> str:
    """Checks that a refusal is one short line; answers which kind of refusal it is."""
    said = str(error)
    if len(said) >= 600 or not said.isprintable():
        raise AssertionError(f"an error that is no short, printable line: {said!r}")
    said.encode()
    return f"refused: {error.path.split('[')[0]}: {error.allowed[:40]}"


def is_json(data: bytes) -> None:
    """Checks that the standard library takes for JSON what we took for it."""
    json.loads(data.decode(), parse_constant=_no_constant, parse_int=str)  # integers may be too long for Python


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} was accepted as JSON")
