"""Selects the log lines and fields for a bundle: those that our daemons write, by name. Pure.

Lines of other programs, of a library or of a crash are left out and counted. A traceback is reduced to its locations,
without messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from partage_cli.support.redaction import plain

_HEAD: Final = frozenset(("ts", "level", "event", "daemon"))
_FIELDS: Final = _HEAD | frozenset(
    (
        *("address", "asked", "before", "bytes", "card", "cards", "cause", "container", "devices", "done", "driver"),
        *(
            "exit_code",
            "file",
            "finding",
            "gen",
            "hook",
            "key",
            "keys",
            "kinds",
            "lease",
            "lost",
            "model",
            "n",
            "namespace",
        ),
        *("node", "origin", "path", "pid", "plugin", "pod", "pods", "reason", "repeats", "reservation", "seconds"),
        *("sharepod", "sharepods", "signal", "state", "uid", "version", "what", "why"),
    )
)
_TEXT: Final = re.compile(
    r"(?P<ts>\d{4}-\d\d-\d\dT[\d:.]+Z) (?P<level>debug|info|warning|error|critical) +(?P<rest>.*)"
)
_FIELD: Final = re.compile(r" ([a-z_]+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S*)")
_FRAME: Final = re.compile(r'^  File "([^"\n]+)", line (\d+), in ([\w.<>]+)$', re.MULTILINE)
_RAISED: Final = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Refused|Group|[A-Z]\w+))(?=:|$)", re.MULTILINE
)


class KeptLines(msgspec.Struct, frozen=True):
    """The kept part of a log as JSON lines, and the number of lines left out."""

    text: bytes
    left_out: int


def kept_lines(lines: Iterable[bytes]) -> KeptLines:
    """Keep the daemons' lines, in either log format."""
    kept, left_out = list[bytes](), 0
    for line in lines:
        if (found := _kept(line)) is not None:
            kept.append(msgspec.json.encode(found) + b"\n")
        elif line.strip():
            left_out += 1
    return KeptLines(b"".join(kept), left_out)


def _kept(line: bytes) -> dict[str, object] | None:
    if line.startswith(b"{"):
        try:
            found = msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return dict(_fields(found)) if found.keys() >= _HEAD else None
    match = _TEXT.fullmatch(line.decode(errors="replace"))
    if match is None:
        return None
    event, *_ = _FIELD.split(match["rest"], maxsplit=1)
    more = {name: _unquoted(value) for name, value in _FIELD.findall(match["rest"])}
    return dict(_fields({"ts": match["ts"], "level": match["level"], "event": event, **more}))


def _unquoted(word: str) -> str:
    return word[1:-1] if word[:1] in {"'", '"'} else word


def _fields(found: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in found.items():
        if name == "traceback":
            yield name, _places(str(value))
        elif name in _FIELDS and isinstance(value, str):
            yield name, plain(value)
        elif name in _FIELDS and (value is None or isinstance(value, bool | int | float)):
            yield name, value


def _places(traceback: str) -> list[str]:
    """Files, lines and functions of a traceback, and the classes of its exceptions."""
    frames = [f"{file}:{line} {name}" for file, line, name in _FRAME.findall(traceback)]
    return [*frames, *(name for name in _RAISED.findall(traceback) if name != "Traceback")]
