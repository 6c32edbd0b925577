"""Places MIG instances on a card's memory slices, under the hardware's constraints. Pure.

A card usually has eight memory slices; each kind of instance takes several adjacent ones and may begin only at certain
positions. Larger instances are placed first, by backtracking search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from partage_simgpu.errors import ProfileRefused
from partage_simgpu.profiles import MigProfile, Profile

MEMORY_SLICES: Final = 8
"""Memory slices of a card."""
_MOST_SLICES: Final = 7


class Placed(NamedTuple):
    """One instance on a card."""

    name: str
    profile: MigProfile
    start: int

    @property
    def gpu_instance(self) -> int:
        """Its ID. IDs number the halves of the card, their halves and so on, so that no two instances share one."""
        return MEMORY_SLICES // self.profile.placements.size - 1 + self.start // self.profile.placements.size


def placed(profile: Profile, names: Sequence[str]) -> list[Placed]:
    """Returns the placement of each instance, ordered by position on the card."""
    unknown = [name for name in names if name not in profile.mig]
    if unknown:
        known = ", ".join(profile.mig) or "none: it cannot do MIG"
        raise ProfileRefused(f"{profile.name} has no MIG profile {unknown[0]}; it has {known}")
    if sum(profile.mig[name].slices for name in names) <= _MOST_SLICES:
        largest_first = sorted(names, key=lambda name: -profile.mig[name].placements.size)
        found = _fitted(profile.mig, largest_first, frozenset())
        if found is not None:
            return sorted(found, key=lambda instance: instance.start)
    raise ProfileRefused(f"{','.join(names)} do not fit on one {profile.name} together; leave some out")


def _fitted(kinds: Mapping[str, MigProfile], names: Sequence[str], taken: frozenset[int]) -> list[Placed] | None:
    if not names:
        return []
    kind = kinds[names[0]]
    for start in kind.placements.starts:
        slices = frozenset(range(start, start + kind.placements.size))
        if slices & taken:
            continue
        rest = _fitted(kinds, names[1:], taken | slices)
        if rest is not None:
            return [Placed(names[0], kind, start), *rest]
    return None
