"""How much of one card's memory is promised, and whether that can be kept. Pure.

A container that is movable has its memory on the card only while it has its turn; at other times it lies in main
memory. An operator says how much of a card may be promised beyond what it has. The promises are kept while

    fixed + turn <= memory            the largest of those that move fits beside all that never leaves
    total        <= memory + beyond   no more is promised than the operator allows

Of each that moves something stays: its contexts and its code.

Where nothing is promised beyond, the second line is the plain sum and the first one follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from partage_plugins.vocabulary.kinds import Role

STAYS_BYTES: Final = 512 << 20
"""So much of what moves is taken to stay, of each container."""
_NOBODY: Final[Mapping[Role, int]] = {"sidecar": 0, "app": 0, "init": 0}


class Promised(NamedTuple):
    """Bytes of one card, to one pod or container, or to all that are on it."""

    total: int = 0
    fixed: int = 0
    """Of these, what never leaves the card."""
    turn: int = 0
    """The most that one which moves needs beside that when it has its turn."""


class Amount(NamedTuple):
    """What one container of a pod, or one budget, is given of a card."""

    role: Role
    size_bytes: int
    movable: bool


class CardMemory(NamedTuple):
    """What a card has, and what may be promised beyond it."""

    has_bytes: int
    beyond_bytes: int = 0

    def keeps(self, promised: Promised) -> bool:
        """Whether all of it can be kept."""
        is_within = promised.total <= self.has_bytes + self.beyond_bytes
        return is_within and promised.fixed + promised.turn <= self.has_bytes

    def left(self, promised: Promised, *, movable: bool) -> int:
        """The most that a newcomer may have; less than nothing where more is promised than can be kept."""
        within = self.has_bytes + self.beyond_bytes - promised.total
        beside = self.has_bytes - promised.fixed
        if movable and promised.turn <= beside - STAYS_BYTES:
            return min(within, beside)
        return min(within, beside - promised.turn)


def in_words(capacity: CardMemory, promised: Promised) -> str:
    """The figures of a card that is promised beyond what it has, for people."""
    has, beyond, total = map(_size, (*capacity, promised.total))
    of_it = f"{_size(promised.fixed)} stay there, and a turn takes {_size(promised.turn)}"
    return f"card {has}, beyond {beyond}, promised {total}, of which {of_it}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.4g} GiB" if size_bytes >= 1 << 30 or not size_bytes else f"{size_bytes >> 20} MiB"


def together(held: Iterable[Promised]) -> Promised:
    """Of all who are on a card at once: each may have its turn beside what all others keep there."""
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
            turns[role] = max(turns[role], size_bytes if movable else 0)  # with what stays of it: it is alone
        else:
            totals[role], fixed[role] = totals[role] + size_bytes, fixed[role] + own
            turns[role] = max(turns[role], size_bytes - own)
    stays, turn = fixed["sidecar"], turns["sidecar"]
    most = max(fixed["app"] + max(turn, turns["app"]), fixed["init"] + turn, turns["init"])
    kept = max(fixed["app"], fixed["init"])
    total = totals["sidecar"] + max(totals["app"], totals["init"])
    return Promised(total, stays + kept, most - kept)
