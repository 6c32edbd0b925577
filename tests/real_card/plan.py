"""What is asked next: the most worthwhile row that fits into the time and the memory that are left. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from real_card.row import Row

MANAGED_PART: Final = 2
"""Managed memory beyond this part of what is free can hang a card that others use, too."""


class Step(NamedTuple):
    row: Row
    limit_s: float


@dataclass(frozen=True)
class Ground:
    """What a run may take of the card."""

    free_bytes: int
    own_card: bool = False

    def forbids(self, row: Row) -> str | None:
        """Why a row is not asked here however much time there is."""
        if self.own_card or row.managed_bytes <= self.free_bytes // MANAGED_PART:
            return None
        asked, free = row.managed_bytes >> 20, self.free_bytes >> 20
        return (
            f"it asks for {asked} MiB of managed memory, and {free} are free: --own-card, if nobody else uses the card"
        )


def next_step(rows: Sequence[Row], left_s: float) -> Step | None:
    """The first of these rows, in the order of their worth, that can be expected to end in time."""
    return next((Step(row, min(row.limit_s, left_s)) for row in rows if row.cost_s <= left_s), None)


def named(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Those of these names; a name that no row has means all that begin with it and a dash. Raises `KeyError`."""
    known = {row.name for row in rows}
    found = set[str]()
    for name in names:
        meant = {name} & known or {each for each in known if each.startswith(f"{name}-")}
        if not meant:
            raise KeyError(name)
        found |= meant
    return [row for row in rows if row.name in found]
