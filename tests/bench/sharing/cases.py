"""Sharers of a card: promises, workloads, and how each is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from support.sharing import Sharer

Words = tuple[str, ...]
SIGMA: Final = 0.03

FLOOD: Final = "flood of 1 ms"
SHORT: Final = "flood of 10 us"
LONG: Final = "flood of 30 ms"
WAIT: Final = "launch and wait"
GRAPHS: Final = "graphs"
MIXED: Final = "mixed kernels"
FOUR: Final = "four processes that wait"

KINDS: Final[Mapping[str, Words]] = {
    FLOOD: ("flood", "--kernel-us", "1000"),
    SHORT: ("flood", "--kernel-us", "10"),
    LONG: ("flood", "--kernel-us", "30000"),
    WAIT: ("launch-wait", "--kernel-us", "1000"),
    GRAPHS: ("graph-replay", "--kernel-us", "200", "--kernels", "10"),
    MIXED: ("mixed",),
    FOUR: ("launch-wait", "--kernel-us", "1000"),
}
FLOODS: Final = frozenset((FLOOD, SHORT, LONG, GRAPHS, MIXED))
"""Workloads without gaps: together they use the whole card."""


@dataclass(frozen=True)
class Case:
    name: str
    sharers: tuple[Sharer, ...]
    kinds: tuple[str, ...]
    promised: tuple[float, ...]
    """By container: its part of the card, if the workload could use all of it."""
    most_sigma: float = SIGMA

    @property
    def is_full(self) -> bool:
        """Whether neither a gap nor a limit leaves time unused."""
        return all(kind in FLOODS for kind in self.kinds) and all(each.limit == 1000 for each in self.sharers)


def sharer(kind: str, share: int, *, limit: int = 1000) -> Sharer:
    program, *words = KINDS[kind]
    processes = 4 if kind == FOUR else 1
    return Sharer(kind.replace(" ", "-"), share, program, tuple(words), limit=limit, processes=processes)


def split(shares: tuple[int, ...], *kinds: str, most_sigma: float = SIGMA) -> Case:
    """Containers with those shares and one workload for all or one for each. Excess is divided in proportion."""
    each = kinds if len(kinds) > 1 else kinds * len(shares)
    sharers = tuple(sharer(kind, share) for kind, share in zip(each, shares, strict=True))
    promised = tuple(share / sum(shares) for share in shares)
    name = "/".join(str(round(share / 10)) for share in shares) + " " + " beside ".join(kinds)
    return Case(name, sharers, each, promised, most_sigma)


def budget(shares: tuple[int, ...], kind: str) -> Case:
    """As `split`, but the first is a pod of two containers with one budget."""
    case = split(shares, kind)
    first, *others = case.sharers
    sharers = (replace(first, containers=2), *others)
    return replace(case, name=f"{case.name}, first a budget of two containers", sharers=sharers)


def capped(*limits: int) -> Case:
    sharers = tuple(sharer(FLOOD, limit, limit=limit) for limit in limits)
    name = "ceilings " + "/".join(str(limit // 10) for limit in limits)
    return Case(name, sharers, (FLOOD,) * len(limits), tuple(limit / 1000 for limit in limits))


THIRDS: Final = (333, 333, 333)
FIFTHS: Final = (200,) * 5
LONG_SIGMA: Final = 0.05

COMPARED: Final = (
    split((300, 700), FLOOD),
    split((100, 900), FLOOD),
    split(FIFTHS, FLOOD),
    split((300, 700), WAIT),
    split((100, 900), LONG, FLOOD, most_sigma=LONG_SIGMA),
    capped(300, 700),
)

TWICE: Final = COMPARED[:1] + COMPARED[-2:]
"""With Gemini's policy at both sets of parameters."""

MORE: Final = (
    split((500, 500), FLOOD),
    split((250, 750), FLOOD),
    split(THIRDS, FLOOD),
    split((300, 700), SHORT),
    split((500, 500), WAIT),
    split((100, 900), WAIT),
    split(FIFTHS, WAIT),
    split((300, 700), GRAPHS),
    split(THIRDS, GRAPHS),
    split((300, 700), MIXED),
    split((100, 900), MIXED, most_sigma=LONG_SIGMA),
    split(FIFTHS, MIXED),
    split((300, 700), FOUR),
    split((100, 300), FLOOD),
    budget((300, 700), FLOOD),
    capped(500),
)
"""Only under our policy; the whole matrix is simulated in simulated time (`support/lease_simulation/matrix.py`)."""
SMOKE: Final = (split((300, 700), FLOOD), budget((300, 700), FLOOD))
