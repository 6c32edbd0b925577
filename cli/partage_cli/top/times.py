"""The columns on card time: how much containers wanted and got in the last ten seconds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from partage_cli.top.columns import Column
from partage_isolation.wire.messages import CardHeld

_BAR: Final = 20
_WHOLE: Final = 1000
SHORT_BY: Final = 0.05
"""A shortfall of this size against the share is highlighted."""


def time_columns(held: Sequence[CardHeld], *, blocks: bool) -> list[Column]:
    """No columns unless time is metered."""
    if not any(each.time for each in held):
        return []
    return [
        Column("", 8, tuple(_bar(each, blocks=blocks) for each in held)),
        Column("GOT", 2, tuple(_percent(each.time.got.s10) if each.time else "-" for each in held)),
        Column("WANTED", 5, tuple(_percent(each.time.wanted.s10) if each.time else "-" for each in held)),
        Column("SHARE", 4, tuple(map(share_cell, held))),
    ]


def share_cell(held: CardHeld) -> str:
    """`30 %`; `30-50 %` with a limit; `10 % (of 30-50 %)` if it was lowered."""
    if held.time is None:
        return "-"
    words = _share(held.share_milli, held.limit_milli)
    granted = _share(held.granted_share_milli, held.granted_limit_milli)
    return words if words == granted else click.style(f"{words} (of {granted})", fg="yellow")


def _bar(held: CardHeld, *, blocks: bool) -> str:
    if held.time is None:
        return ""
    got, wanted = (min(_BAR, round(part * _BAR)) for part in (held.time.got.s10, held.time.wanted.s10))
    full, missing, empty = ("█", "▒", "░") if blocks else ("#", "+", ".")
    waited = max(0, wanted - got)
    return click.style(full * got, fg=_colour(held)) + missing * waited + empty * (_BAR - got - waited)


def _colour(held: CardHeld) -> str:
    """Yellow for a container that wants its share and gets less."""
    if held.time is None:
        return "green"
    due = min(held.share_milli / _WHOLE, held.time.wanted.s10)
    return "yellow" if held.time.got.s10 < due - SHORT_BY else "green"


def _share(share_milli: int, limit_milli: int) -> str:
    share = f"{share_milli / 10:g}"
    return f"{share} %" if limit_milli == _WHOLE else f"{share}-{limit_milli / 10:g} %"


def _percent(part: float) -> str:
    return f"{part * 100:.0f} %"
