"""Shared by the decoders' targets: tokens of JSON, and the check of a refusal from any decoder."""

from __future__ import annotations

from partage_plugins.errors import DecodeError

_BORDERS = (b"1.0", b"1e999", b"-1", b"9" * 20, b"9" * 4301, b"\\ud800", b"\\u0000")
JSON_WORDS = (*_BORDERS, b'{"', b'":', b"[", b"]", b"null")


def refused(error: DecodeError) -> str:
    """Checks that a refusal is one short line; returns its kind."""
    said = str(error)
    if len(said) >= 600 or not said.isprintable():
        raise AssertionError(f"an error that is no short, printable line: {said!r}")
    said.encode()
    return f"refused: {error.path.split('[')[0]}: {error.allowed[:40]}"
