"""Chooses the next row: the most important one that fits into the remaining time and memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from real_card.row import Row

MANAGED_PART: Final = 2
"""Managed memory beyond this part of the free memory can hang a card that others use, too."""


class Step(NamedTuple):
    row: Row
    limit_s: float


@dataclass(frozen=True)
class Ground:
    """Limits on a run's use of the card."""

    free_bytes: int
    own_card: bool = False

    def forbids(self, row: Row) -> str | None:
        """Why a row is never asked here, independent of time."""
        if self.own_card or row.managed_bytes <= self.free_bytes // MANAGED_PART:
            return None
        asked, free = row.managed_bytes >> 20, self.free_bytes >> 20
        return (
            f"it asks for {asked} MiB of managed memory, and {free} are free: --own-card, if nobody else uses the card"
        )


def next_step(rows: Sequence[Row], left_s: float) -> Step | None:
    """The most important of these rows that is expected to end in time."""
    return next((Step(row, min(row.limit_s, left_s)) for row in rows if row.cost_s <= left_s), None)


def named(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The rows with these names. An unknown name means all rows that begin with it and a dash.

    Raises `KeyError`.
    """
    known = {row.name for row in rows}
    found = set[str]()
    for name in names:
        meant = {name} & known or {each for each in known if each.startswith(f"{name}-")}
        if not meant:
            raise KeyError(name)
        found |= meant
    return [row for row in rows if row.name in found]
