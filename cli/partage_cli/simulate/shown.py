"""Output of ``partage simulate``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from partage_cli.simulation import Point, Summary, Workload
from partage_cli.simulation.results import Mean
from partage_cli.tables import printable, table

_FULL: Final = 100


def as_table(workload: Workload, summaries: Sequence[Summary], now: Point | None) -> str:
    """A line for each policy, with the figures when requests reach the capacity, and at the end."""
    marks = sorted({mark for mark in (_FULL, _last(summaries)) if all(each.at(mark) for each in summaries)})
    header = ["POLICY"]
    for mark in marks:
        header += [f"ALLOCATED AT {mark} %", f"FRAGMENTS AT {mark} %"]
    header += ["IDLE CARDS", "PODS", "UNPLACED"]
    rows = (tuple(_row(each, marks)) for each in summaries)
    return _head(workload, now) + table(header, rows)


def as_json(workload: Workload, summaries: Sequence[Summary], now: Point | None) -> bytes:
    """JSON output; docs/simulate.md documents the shape."""
    whole = {
        "workload": {
            "origin": workload.origin,
            "nodes": len(workload.nodes),
            "cards": workload.cards,
            "pods": len(workload.requests),
        },
        "now": now,
        "policies": summaries,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _head(workload: Workload, now: Point | None) -> str:
    said = f"{printable(workload.origin)}: {len(workload.nodes)} nodes, {workload.cards} cards"
    if now is not None:
        said += (
            f"\nnow: pods ask for {now.arrived} % of the cards; {now.allocated:.2f} % are allocated, "
            f"{now.fragments:.2f} % are fragments"
        )
    return said + "\n\n"


def _row(summary: Summary, marks: Sequence[int]) -> Iterator[str]:
    yield summary.policy
    for mark in marks:
        point = summary.at(mark)
        if point is not None:
            yield from (_percent(point.allocated, summary), _percent(point.fragments, summary))
    yield from (f"{summary.idle_cards:.0f}", f"{summary.pods:.0f}", f"{summary.unplaced:.0f}")


def _percent(mean: Mean, summary: Summary) -> str:
    """The mean, with the spread between seeds if there are several."""
    return f"{mean.mean:.2f} % ± {mean.spread:.2f}" if len(summary.seeds) > 1 else f"{mean.mean:.2f} %"


def _last(summaries: Sequence[Summary]) -> int:
    return min((each.points[-1].arrived for each in summaries if each.points), default=_FULL)
