"""Formats figures and bars as plain text."""

from collections.abc import Iterable, Mapping, Sequence

from bench.measuring.bars import Bar
from bench.measuring.rounds import Difference, Spread, Timing

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_VERDICTS = {True: "holds", False: "BROKEN", None: "not judged"}


def duration(nanoseconds: float) -> str:
    """Three digits and a suitable unit: `2.13 us`."""
    scale, unit = next((pair for pair in _UNITS if abs(nanoseconds) >= pair[0]), _UNITS[-1])
    value = nanoseconds / scale
    decimals = max(0, 3 - len(str(int(abs(value)))))
    return f"{value:.{decimals}f} {unit}"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows with aligned columns; the first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def report(spreads: Mapping[str, Spread], figures: Mapping[str, float], bars: Iterable[Bar]) -> str:
    tables = [
        _times(spreads),
        [[name, f"{value:g}"] for name, value in figures.items()],
        [_bar_row(bar) for bar in bars],
    ]
    return "\n\n".join(columns(rows) for rows in tables if rows)


def _times(spreads: Mapping[str, Spread]) -> list[list[str]]:
    rows = [row for name, spread in spreads.items() for row in _spread_rows(name, spread)]
    return [["per call", "median", "q1", "q3", "rounds"], *rows] if rows else []


def _spread_rows(name: str, spread: Spread) -> list[list[str]]:
    row = [name, *(duration(value) for value in (spread.median_ns, spread.q1_ns, spread.q3_ns))]
    if isinstance(spread, Timing):
        return [[*row, f"{spread.rounds} x {spread.per_round}"]]
    if isinstance(spread, Difference):
        sides = [*_spread_rows("  reference", spread.reference), *_spread_rows("  candidate", spread.candidate)]
        return [[*row, f"ratio {spread.ratio:.3g}"], *sides]
    return [[*row, ""]]


def _bar_row(bar: Bar) -> list[str]:
    sense = bar.sense.replace("_", " ")
    return [bar.name, f"{bar.figure:.4g} {bar.unit}", f"{sense} {bar.bar:g} {bar.unit}", _VERDICTS[bar.holds]]
