"""A table that fits a terminal: the least important columns go first, lines that are still too long are cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from partage_cli.tables import table

_CUT: Final = "…"


@dataclass(frozen=True)
class Column:
    """One column, a cell for each row."""

    name: str
    rank: int
    """How long it stays: those with the highest leave first."""
    cells: tuple[str, ...]


def fitted(columns: Sequence[Column], width: int) -> list[str]:
    """Lines of at most `width` characters, the header first; 0 is as wide as it comes."""
    kept = list(columns)
    lines = _lines(kept)
    while width and len(kept) > 1 and max(map(_width, lines)) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
        lines = _lines(kept)
    return [cut(line, width) for line in lines]


def cut(line: str, width: int) -> str:
    """At most so wide; what is cut loses its colours."""
    if not width or _width(line) <= width:
        return line
    return click.unstyle(line)[: max(0, width - len(_CUT))] + _CUT


def _lines(columns: Sequence[Column]) -> list[str]:
    rows = zip(*(column.cells for column in columns), strict=True)
    return table([column.name for column in columns], rows).splitlines()


def _width(line: str) -> int:
    return len(click.unstyle(line))
