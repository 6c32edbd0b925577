"""Parses a file that a systemd unit names in ``EnvironmentFile=``. Pure.

Its rules are neither a shell's nor a unit's: quotes count only at the beginning of a part of the value, a quoted part
may span lines, and the last assignment of a name wins. Lines that are no assignment are skipped.
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = " \t\r"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINGLE: Final = re.compile(r"'([^']*)'?")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"?', re.DOTALL)
_IN_DOUBLE: Final = re.compile(r"\\(.)", re.DOTALL)
_BARE: Final = re.compile(r"\\(?P<escaped>.?)|(?P<blank>[ \t\r])|(?P<letter>[^\n])", re.DOTALL)


def environment_file(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        name, equals, _ = line.partition("=")
        if not equals or line.lstrip(_BLANKS).startswith(("#", ";")):
            at += len(line) + 1
            continue
        value, at = _value(text, at + len(name) + 1)
        if _NAME.fullmatch(name.strip(_BLANKS)):
            found[name.strip(_BLANKS)] = value
    return found


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that begins at `at`, and the position of the next line."""
    parts: list[str] = []
    while True:
        while text[at : at + 1] in {" ", "\t", "\r"}:
            at += 1
        if single := _SINGLE.match(text, at):
            parts.append(single[1])
            at = single.end()
        elif double := _DOUBLE.match(text, at):
            parts.append(_IN_DOUBLE.sub(_unescaped, double[1]))
            at = double.end()
        else:
            bare, at = _bare(text, at)
            return "".join([*parts, bare]), at + 1


def _unescaped(match: re.Match[str]) -> str:
    if match[1] == "\n":
        return ""
    return match[1] if match[1] in '"\\`$' else match[0]


def _bare(text: str, at: int) -> tuple[str, int]:
    """An unquoted value up to the end of the line without trailing blanks; an escaped newline doesn't end it."""
    value, kept = "", 0
    while match := _BARE.match(text, at):
        at = match.end()
        if match["blank"]:
            value += match["blank"]
            continue
        value += match["letter"] or match["escaped"].replace("\n", "")
        kept = len(value)
    return value[:kept], at
