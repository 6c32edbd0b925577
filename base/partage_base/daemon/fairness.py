"""Chooses which of too many rows are shown, so that one owner's excess takes no room from others. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

R = TypeVar("R")


def fair_part(rows: Sequence[R], most: int, owner: Callable[[R], str]) -> Sequence[R]:
    """At most `most` rows: an owner gets all it wants, or as many as any other owner gets."""
    if len(rows) <= most:
        return rows
    wanted, left = Counter(map(owner, rows)), most
    room = dict[str, int]()
    for place, (name, count) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        room[name] = min(count, left // (len(wanted) - place))
        left -= room[name]
    shown = list[R]()
    for row in rows:
        if room[name := owner(row)]:
            room[name] -= 1
            shown.append(row)
    return shown
