"""Whether the node's cards are paused, and waiting until they are or are not.

The advertiser writes that into the inventory after it has released the driver. If none runs the inventory is outdated,
and only whether a process of ours still holds the driver counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_cli.doctor.daemons import is_held
from partage_cli.doctor.inventory import inventory_of
from partage_cli.doctor.local_node import LocalNode
from partage_cli.node.holders import Holder, holders
from partage_plugins.api import GPU, HealthCause, Inventory
from partage_plugins.api.places import ADVERTISER_LOCK

_AGAIN_S: Final = 0.2


@dataclass(frozen=True)
class RestState:
    advertiser_runs: bool
    cards: int
    resting: int
    holders: tuple[Holder, ...]

    @property
    def ours(self) -> tuple[Holder, ...]:
        return tuple(each for each in self.holders if each.is_ours)

    @property
    def others(self) -> tuple[Holder, ...]:
        """Holders that are not ours."""
        return tuple(each for each in self.holders if not each.is_ours)

    @property
    def rests(self) -> bool:
        """No process of partage holds the driver, nor will while the pause lasts."""
        return not self.ours and (not self.advertiser_runs or self.resting == self.cards)

    @property
    def works(self) -> bool:
        """The cards are advertised again, if an advertiser runs."""
        return not self.advertiser_runs or not self.resting


def look(root: Path) -> RestState:
    read = inventory_of(LocalNode(root, ""))
    part = read.part(GPU) if isinstance(read, Inventory) else None
    cards = () if part is None else part.cards
    resting = sum(card.cause == HealthCause.PAUSED for card in cards)
    # A lock that we may not check is held, by the advertiser.
    return RestState(bool(is_held(root / ADVERTISER_LOCK)), len(cards), resting, holders(root))


def wait_until(
    is_so: Callable[[RestState], bool],
    look_now: Callable[[], RestState],
    within_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> RestState:
    """Polls until `is_so`; returns that state, or the last one before the timeout."""
    until = clock() + within_s
    while True:
        seen = look_now()
        if is_so(seen) or clock() >= until:
            return seen
        sleep(_AGAIN_S)
