"""Reads the YAML that programs write for CDI: blocks of mappings and lists with one-line scalars. Pure.

NVIDIA's tools write YAML unless they are told otherwise, and a node daemon should not need a YAML library for one file.
Everything beyond that subset (anchors, tags, texts over several lines, flow collections but empty ones, numbers that
are no plain integers) raises `ValueError` with the line; nothing is ever guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

_DEEPEST: Final = 16
_WHITE: Final = " \t"
_WORDS: Final[dict[str, bool | None]] = {"null": None, "~": None, "true": True, "false": False}
_EMPTY: Final[dict[str, type]] = {"{}": dict, "[]": list}
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBERS: Final = r"[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?|0[xob][0-9a-f_]+|[-+]?\.(inf|nan)"
_OTHERS: Final = r"y|n|yes|no|on|off|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|[0-9]+(:[0-9]+)+"
_AMBIGUOUS: Final = re.compile(f"{_NUMBERS}|{_OTHERS}|null|true|false", re.IGNORECASE | re.ASCII)
_KEY: Final = re.compile(r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'\[\]{}#&*!|>%@`,?:-][^\s:#]*):(?: +|$)""")
_QUOTED: Final = re.compile(r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?: #.*)?""")
_SPECIAL: Final = (*"\"'[]{}#&*!|>%@`,?", "- ")


class _Line(NamedTuple):
    number: int
    indent: int
    text: str


def read_yaml(text: str) -> Any:  # noqa: ANN401  any document
    """The document, as `json` would give it."""
    lines = [line for number, raw in enumerate(text.split("\n"), 1) if (line := _line(number, raw)) is not None]
    if lines and lines[0].text == "---" and lines[0].indent == 0:
        del lines[0]
    if not lines:
        raise ValueError("nothing stands in it")
    reader = _Reader(lines)
    value = reader.block(lines[0].indent, 0)
    if reader.left:
        raise _beyond(reader.here, "indentation that belongs to nothing")
    return value


def _line(number: int, raw: str) -> _Line | None:
    raw = raw.removesuffix("\r")
    text = raw.lstrip(" ").rstrip(_WHITE)
    if not text or text.startswith("#"):
        return None
    line = _Line(number, len(raw) - len(raw.lstrip(" ")), text)
    if not text.isprintable():
        raise _beyond(line, "a tab or another control character")
    return line


class _Reader:
    """Where in the lines the reading is."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._lines)

    @property
    def here(self) -> _Line:
        return self._lines[self._at]

    def block(self, indent: int, depth: int) -> Any:  # noqa: ANN401
        """The list or mapping whose lines begin at this indentation."""
        if depth > _DEEPEST:
            raise _beyond(self.here, f"more than {_DEEPEST} levels")
        if _is_item(self.here):
            return self._list(indent, depth)
        if _KEY.match(self.here.text):
            return self._mapping(indent, depth)
        raise _beyond(self.here, "neither 'key: value' nor '- item'")

    def _list(self, indent: int, depth: int) -> list[Any]:
        items: list[Any] = []
        while self.left and self.here.indent == indent and _is_item(self.here):
            line = self.here
            rest = line.text[1:].lstrip(" ")
            inner = _Line(line.number, indent + len(line.text) - len(rest), rest)
            if _KEY.match(rest) or _is_item(inner):  # a collection begins behind the dash
                self._lines[self._at] = inner
                items.append(self.block(self.here.indent, depth + 1))
            else:
                items.append(self._value(line, rest, lambda below: below.indent > indent, depth))
        return items

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self.left and self.here.indent == indent and (match := _KEY.match(self.here.text)):
            line, key = self.here, _text(self.here, match["key"])
            if key in fields:
                raise _beyond(line, f"the key {key!r:.80} for the second time")
            rest = line.text[match.end() :]

            # Go's tools begin a list at its key's own indentation, or further in.
            def is_below(below: _Line) -> bool:
                return below.indent > indent or (below.indent == indent and _is_item(below))

            fields[key] = self._value(line, rest, is_below, depth)
        return fields

    def _value(self, line: _Line, rest: str, is_below: Callable[[_Line], bool], depth: int) -> Any:  # noqa: ANN401
        self._at += 1
        if not rest or rest.startswith("#"):
            return self.block(self.here.indent, depth + 1) if self.left and is_below(self.here) else None
        if self.left and self.here.indent > line.indent:
            raise _beyond(self.here, "a text that goes on from the line before")
        return _scalar(line, rest)


def _is_item(line: _Line) -> bool:
    return line.text == "-" or line.text.startswith("- ")


def _scalar(line: _Line, rest: str) -> Any:  # noqa: ANN401
    quoted = _QUOTED.fullmatch(rest)
    if quoted:
        return _text(line, quoted["text"])
    plain = rest.partition(" #")[0].rstrip(_WHITE)
    if plain in _WORDS:
        return _WORDS[plain]
    if plain in _EMPTY:
        return _EMPTY[plain]()
    if _INTEGER.fullmatch(plain):
        return int(plain)
    if plain.startswith(_SPECIAL) or plain in {"-", "---"} or ": " in plain or plain.endswith(":"):
        raise _beyond(line, f"{plain!r:.80}")
    if _AMBIGUOUS.fullmatch(plain):
        raise _beyond(line, f"{plain!r:.80}, which readers take for different things")
    return plain


def _text(line: _Line, token: str) -> str:
    if token.startswith("'"):
        return token[1:-1].replace("''", "'")
    if not token.startswith('"'):
        return token
    try:
        return msgspec.json.decode(token.encode(), type=str)
    except (msgspec.MsgspecError, UnicodeError):
        raise _beyond(line, f"{token!r:.80}") from None


def _beyond(line: _Line, what: str) -> ValueError:
    return ValueError(f"line {line.number} has {what}, which is beyond the YAML that is read here; JSON is read too")
