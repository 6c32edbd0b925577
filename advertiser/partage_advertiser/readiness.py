"""Which daemons of this node are in force, from the signs of life that they leave below /run/partage.

Each is a file whose time is when its writer last did its work: kubelet spoke through crishim, the broker went round.
crishim's condition says besides that it honours allocations: it also serves where it cannot.
The time of a file can't be forged by users, who see nothing below that folder, and it outlives whoever wrote it: so the
age counts. A time to come (the clock was set back) counts as old; the next sign of life mends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.condition import Condition, Fault
from partage_base.condition_file import last_condition
from partage_plugins.vocabulary.inventory import Ready
from partage_plugins.vocabulary.places import BROKER_ALIVE, KUBELET_SPOKE

_CLOCK_SLACK_S: Final = 2.0


class Readiness:
    """The signs of one node."""

    def __init__(self, root: Path, *, within_s: float, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._within_s = within_s
        self._clock = clock

    def now(self) -> Ready:
        """Who is in force."""
        return Ready(crishim=self._is_fresh(KUBELET_SPOKE) and self._honours(), broker=self._is_fresh(BROKER_ALIVE))

    def crishim_faults(self) -> tuple[Fault, ...]:
        """What crishim says is wrong with it; nothing where it says nothing."""
        condition = self._condition()
        return condition.faults if condition is not None else ()

    def _honours(self) -> bool:
        condition = self._condition()
        return condition is not None and condition.honours

    def _condition(self) -> Condition | None:
        return last_condition(self._root, within_s=self._within_s, clock=self._clock)

    def _is_fresh(self, name: str) -> bool:
        try:
            age_s = self._clock() - (self._root / name).stat().st_mtime
        except OSError:  # not there, or not to be seen: either way nobody shows that it is in force
            return False
        return -_CLOCK_SLACK_S <= age_s <= self._within_s
