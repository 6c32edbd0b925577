"""Fits a table to a terminal: drops the least important columns first, then cuts lines still too long. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from partage_cli.tables import table

_CUT: Final = "…"


@dataclass(frozen=True)
class Column:
    """One column, with a cell for each row."""

    name: str
    rank: int
    """Drop order: the column with the highest rank is dropped first."""
    cells: tuple[str, ...]


def fitted(columns: Sequence[Column], width: int) -> list[str]:
    """Lines of at most `width` characters, the header first; 0 is unlimited."""
    kept = list(columns)
    lines = _lines(kept)
    while width and len(kept) > 1 and max(map(_width, lines)) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
        lines = _lines(kept)
    return [cut(line, width) for line in lines]


def cut(line: str, width: int) -> str:
    """Cut the line to that width; a line that is cut loses its colours."""
    if not width or _width(line) <= width:
        return line
    return click.unstyle(line)[: max(0, width - len(_CUT))] + _CUT


def _lines(columns: Sequence[Column]) -> list[str]:
    rows = zip(*(column.cells for column in columns), strict=True)
    return table([column.name for column in columns], rows).splitlines()


def _width(line: str) -> int:
    return len(click.unstyle(line))
