"""Rows for people: aligned columns, and times as kubectl words them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import click

_GAP: Final = "   "
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One line a row, each column as wide as its widest cell; nothing at the end of lines. Cells may have colours."""
    lines = [header, *rows]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(header))]
    return "".join(_line(line, widths) for line in lines)


def age(seconds: float | None) -> str:
    """`3d`, `5h`, `12m`, `40s`; a time to come counts as now."""
    if seconds is None:
        return "unknown"
    whole = max(0, int(seconds))
    size, unit = next(((size, unit) for size, unit in _UNITS if whole >= size), _UNITS[-1])
    return f"{whole // size}{unit}"


def printable(text: str) -> str:
    """Text of others as one line that moves no terminal's cursor."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return _GAP.join(padded).rstrip() + "\n"


def _width(cell: str) -> int:
    """Colours take no room."""
    return len(click.unstyle(cell))
