"""How much of one card's memory is promised, and whether the promises can be kept. Pure.

The memory of a movable container is on the card only during the container's turn; otherwise it is in main memory. An
operator sets how much of a card's memory may be oversubscribed. The promises can be kept while

    fixed + turn <= memory            the largest of the movable containers fits beside all that never leaves
    total        <= memory + beyond   no more is promised than the operator allows

A part of each movable container stays on the card: its contexts and its code.

Without oversubscription, the second condition is the plain sum, and the first one follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from partage_plugins.api.kinds import Role

STAYS_BYTES: Final = 512 << 20
"""The bytes of each movable container that are assumed to stay on the card."""
_NOBODY: Final[Mapping[Role, int]] = {"sidecar": 0, "app": 0, "init": 0}


class Promised(NamedTuple):
    """Bytes of one card that are promised to a pod, to a container, or to all containers on it."""

    total: int = 0
    fixed: int = 0
    """The part of `total` that never leaves the card."""
    turn: int = 0
    """The most that one movable container needs in addition to `fixed` during its turn."""


class Amount(NamedTuple):
    """The grant of one container of a pod, or of one budget, on one card."""

    role: Role
    size_bytes: int
    movable: bool


class CardMemory(NamedTuple):
    """A card's memory, and how much more than that may be promised."""

    has_bytes: int
    beyond_bytes: int = 0

    def keeps(self, promised: Promised) -> bool:
        """Whether all of it can be kept."""
        is_within = promised.total <= self.has_bytes + self.beyond_bytes
        return is_within and promised.fixed + promised.turn <= self.has_bytes

    def left(self, promised: Promised, *, movable: bool) -> int:
        """The most that a new container may have; negative if more is promised than can be kept."""
        within = self.has_bytes + self.beyond_bytes - promised.total
        beside = self.has_bytes - promised.fixed
        if movable and promised.turn <= beside - STAYS_BYTES:
            return min(within, beside)
        return min(within, beside - promised.turn)


def in_words(capacity: CardMemory, promised: Promised) -> str:
    """The figures of an oversubscribed card, as a sentence."""
    has, beyond, total = map(_size, (*capacity, promised.total))
    of_it = f"{_size(promised.fixed)} stay there, and a turn takes {_size(promised.turn)}"
    return f"card {has}, beyond {beyond}, promised {total}, of which {of_it}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.4g} GiB" if size_bytes >= 1 << 30 or not size_bytes else f"{size_bytes >> 20} MiB"


def together(held: Iterable[Promised]) -> Promised:
    """The sum for all holders that are on a card at once: each may have its turn beside what all others keep there."""
    total = fixed = turn = 0
    for each in held:
        total, fixed, turn = total + each.total, fixed + each.fixed, max(turn, each.turn)
    return Promised(total, fixed, turn)


def of_pod(amounts: Iterable[Amount]) -> Promised:
    """The most that a pod has at any time of its life: its init containers end before its app containers begin."""
    totals, fixed, turns = {**_NOBODY}, {**_NOBODY}, {**_NOBODY}
    for role, size_bytes, movable in amounts:
        own = min(size_bytes, STAYS_BYTES) if movable else size_bytes
        if role == "init":
            totals[role], fixed[role] = max(totals[role], size_bytes), max(fixed[role], own)
            turns[role] = max(turns[role], size_bytes if movable else 0)  # with the part that stays: it runs alone
        else:
            totals[role], fixed[role] = totals[role] + size_bytes, fixed[role] + own
            turns[role] = max(turns[role], size_bytes - own)
    stays, turn = fixed["sidecar"], turns["sidecar"]
    most = max(fixed["app"] + max(turn, turns["app"]), fixed["init"] + turn, turns["init"])
    kept = max(fixed["app"], fixed["init"])
    total = totals["sidecar"] + max(totals["app"], totals["init"])
    return Promised(total, stays + kept, most - kept)
