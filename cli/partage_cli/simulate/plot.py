"""Draws a simulation's curves as one SVG: allocated cards and fragments, over arrivals. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from partage_cli.simulation import Summary, Workload
from partage_cli.simulation.results import MeanPoint
from partage_cli.tables import printable

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito, distinguishable with colour vision deficiencies."""
_FONT: Final = 'font-family="sans-serif" font-size="12" fill="#222"'
_WIDTH: Final = 420
_HEIGHT: Final = 300
_LEFT: Final = 56
_TOP: Final = 64
_GAP: Final = 96
_TICKS: Final = 5
_LEGEND_PX: Final = 22
_STEPS: Final = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500)


class _Panel(NamedTuple):
    """One pair of axes with its position."""

    title: str
    left: int
    right_end: int
    """Largest number on the horizontal axis."""
    step: int
    """Distance between the lines of the vertical axis."""
    value: Callable[[MeanPoint], float]

    @property
    def top_end(self) -> int:
        """Largest number on the vertical axis."""
        return self.step * _TICKS

    def place(self, arrived: float, value: float) -> tuple[float, float]:
        """Coordinates of a point."""
        return (
            self.left + _WIDTH * arrived / self.right_end,
            _TOP + _HEIGHT * (1 - min(value, self.top_end) / self.top_end),
        )


def as_svg(workload: Workload, summaries: Sequence[Summary]) -> str:
    """An SVG image of all curves."""
    panels = [
        _panel("allocated, % of cards", _LEFT, summaries, _allocated),
        _panel("fragments, % of cards", _LEFT + _WIDTH + _GAP, summaries, _fragments),
    ]
    width = _LEFT + 2 * _WIDTH + _GAP + 24
    height = _TOP + _HEIGHT + 64 + _LEGEND_PX * len(summaries)
    size = f'width="{width}" height="{height}"'
    title = f"{printable(workload.origin)}: {len(workload.nodes)} nodes, {workload.cards} cards"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} {_FONT}>',
        f'<rect {size} fill="#fff"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">{escape(title)}</text>',
        *(line for panel in panels for line in _drawn(panel, summaries)),
        *_legend(summaries),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _allocated(point: MeanPoint) -> float:
    return point.allocated.mean


def _fragments(point: MeanPoint) -> float:
    return point.fragments.mean


def _panel(title: str, left: int, summaries: Sequence[Summary], value: Callable[[MeanPoint], float]) -> _Panel:
    points = [point for each in summaries for point in each.points]
    highest = max((value(point) for point in points), default=1.0)
    return _Panel(title, left, max((point.arrived for point in points), default=100), _step(highest), value)


def _step(end: float) -> int:
    """Distance between the numbers of an axis up to `end`."""
    return next((step for step in _STEPS if step * _TICKS >= end), _STEPS[-1])


def _drawn(panel: _Panel, summaries: Sequence[Summary]) -> Iterator[str]:
    yield f'<text x="{panel.left}" y="{_TOP - 14}">{panel.title}</text>'
    for tick in range(_TICKS + 1):
        number = tick * panel.step
        _, y = panel.place(0, number)
        yield f'<path d="M{panel.left} {y:.1f}h{_WIDTH}" stroke="#ddd"/>'
        yield f'<text x="{panel.left - 8}" y="{y + 4:.1f}" text-anchor="end">{number}</text>'
    _, bottom = panel.place(0, 0)
    for arrived in range(
        0, panel.right_end + 1, next(s for s in _STEPS if s * 7 >= panel.right_end or s == _STEPS[-1])
    ):
        x, _ = panel.place(arrived, 0)
        yield f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{arrived}</text>'
    middle = panel.left + _WIDTH / 2
    yield f'<text x="{middle:.1f}" y="{bottom + 38:.1f}" text-anchor="middle">arrived, % of cards</text>'
    for number, summary in enumerate(summaries):
        yield _curve(panel, summary, number)


def _curve(panel: _Panel, summary: Summary, number: int) -> str:
    places = (panel.place(point.arrived, panel.value(point)) for point in summary.points)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke-width="2" {_stroke(number)}/>'


def _legend(summaries: Sequence[Summary]) -> Iterator[str]:
    top = _TOP + _HEIGHT + 60
    for number, summary in enumerate(summaries):
        y = top + number * _LEGEND_PX
        yield f'<path d="M{_LEFT} {y}h32" stroke-width="2" {_stroke(number)}/>'
        yield f'<text x="{_LEFT + 40}" y="{y + 4}">{escape(summary.policy)}</text>'


def _stroke(number: int) -> str:
    """Stroke attributes: a colour for each curve, and dashes once colours repeat."""
    dashes = number // len(_COLOURS)
    dashed = f' stroke-dasharray="{6 * dashes} 3"' if dashes else ""
    return f'stroke="{_COLOURS[number % len(_COLOURS)]}"{dashed}'
