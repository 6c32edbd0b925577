"""Output of commands: tables, JSON, shortened lists of names, ages as kubectl prints them, card memory sizes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import click
import msgspec

_GAP: Final = "   "
_AGES: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SIZES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_WHOLE_FROM: Final = 99.95


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One line for each row, columns as wide as their widest cell, no trailing spaces. Cells may have colours."""
    lines = [header, *rows]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(header))]
    return "".join(_line(line, widths) for line in lines)


def as_json(found: object) -> bytes:
    """JSON output; docs/configuration.md documents the shapes."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


def as_yaml(found: object) -> bytes:
    return msgspec.yaml.encode(msgspec.to_builtins(found))


def few(names: Iterable[str], most: int = 5) -> str:
    """`a, b and 3 more`; names are made printable, so that none moves the terminal's cursor."""
    found = [printable(name) for name in names]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def age(seconds: float | None) -> str:
    """`3d`, `5h`, `12m`, `40s`; a time in the future counts as now."""
    if seconds is None:
        return "unknown"
    whole = max(0, int(seconds))
    size, unit = next(((size, unit) for size, unit in _AGES if whole >= size), _AGES[-1])
    return f"{whole // size}{unit}"


def amount(size_bytes: int | None) -> str:
    """`5.2 GiB`, `80 GiB`, `512 MiB`, `0`; a hyphen if it is unknown."""
    if size_bytes is None:
        return "-"
    unit, name = next(((unit, name) for unit, name in _SIZES if size_bytes >= unit), (1, "B"))
    number = size_bytes / unit
    digits = 0 if size_bytes % unit == 0 or number >= _WHOLE_FROM else 1
    return f"{number:.{digits}f} {name}" if size_bytes else "0"


def short_id(card_id: str) -> str:
    """The start of a card's id, enough to tell it from others on its node: `GPU-6f0c1234`."""
    return card_id[:12]


def pod_name(namespace: str, name: str) -> str:
    """`namespace/name`, without the namespace `default`."""
    return printable(name if namespace == "default" else f"{namespace}/{name}")


def printable(text: str) -> str:
    """Untrusted text on one line, without characters that move the terminal's cursor."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return _GAP.join(padded).rstrip() + "\n"


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
