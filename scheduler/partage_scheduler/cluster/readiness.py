"""Which nodes take part where devices are shared, and why the others don't. By slot, in arrays.

A node takes part while its heartbeat is fresh, crishim is in force, and it reads a version of allocations that we
write. For requests of a kind whose grants may promise a part of a device, the broker must be in force too: it enforces
them. For requests with budgets the node must read these. Pods that ask for no device may be anywhere.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from partage_plugins.codecs.allocation import highest_common_version
from partage_plugins.vocabulary import Inventory, NodeName, Slot
from partage_plugins.vocabulary.reasons import Reason
from partage_scheduler.decision import Barred
from partage_scheduler.decision.slots import grown

_READY: Final = 0
REASONS: Final = (
    None,
    Reason("says-nothing", "node(s) didn't say which devices they have", lasts=True),
    Reason("unreadable", "node(s) had an inventory that can't be read", lasts=True),
    Reason("no-crishim", "node(s) had no crishim in force", lasts=True),
    Reason("no-version", "node(s) read no version of allocations that this scheduler writes", lasts=True),
    Reason("no-broker", "node(s) had no broker in force", lasts=True),
    Reason("no-budgets", "node(s) can't read budgets of several containers: upgrade partage there", lasts=True),
)
SAID_NOTHING, UNREADABLE, _NO_CRISHIM, _NO_VERSION, _NO_BROKER, _NO_BUDGETS = range(1, len(REASONS))
_MAY_DO: Final = (_READY, _NO_BROKER)
"""Obstacles that leave requests to which the node is open."""
SILENT: Final = Reason("no-heartbeat", "node(s) had no heartbeat of the advertiser", lasts=True)


def obstacle_of(inventory: Inventory) -> int:
    """A place in `REASONS`; 0 where nothing keeps the node from taking part."""
    if not inventory.ready.crishim:
        return _NO_CRISHIM
    if highest_common_version(inventory.reads.allocation) is None:
        return _NO_VERSION
    return _READY if inventory.ready.broker else _NO_BROKER


class Readiness:
    def __init__(self, silent_after_s: float) -> None:
        self._silent_after_s = silent_after_s
        self._obstacles = np.zeros(0, dtype=np.int8)
        self._reads_budgets = np.zeros(0, dtype=np.bool_)
        self._fresh_until = np.zeros(0, dtype=np.float64)
        self._slots: dict[NodeName, Slot] = {}
        self._beats: dict[NodeName, tuple[float, float]] = {}
        """By node, known or not: what the last beat said, and when it was noticed."""
        self._barred: dict[tuple[bool, bool], list[Barred]] = {}
        """By whether the broker is needed, and whether there are budgets to read."""
        self._right_until = -math.inf

    def put(self, node: NodeName, slot: Slot, obstacle: int, *, reads_budgets: bool) -> bool:
        """Whether this is better than before."""
        if node not in self._slots:
            self._reads_budgets = grown(self._reads_budgets, slot + 1, fill=True)
            self._reads_budgets[slot] = False
            self._obstacles = grown(self._obstacles, slot + 1, _READY)
            self._fresh_until = grown(self._fresh_until, slot + 1, math.inf)
            self._obstacles[slot] = SAID_NOTHING
            self._slots[node] = slot
            self._fresh_until[slot] = self._fresh(node)
            self._right_until = -math.inf
        before, self._obstacles[slot] = int(self._obstacles[slot]), obstacle
        did_read, self._reads_budgets[slot] = bool(self._reads_budgets[slot]), reads_budgets
        if (before, did_read) != (obstacle, reads_budgets):
            self._right_until = -math.inf
        if obstacle not in _MAY_DO:
            return False
        return (obstacle == _READY != before) or before not in _MAY_DO or (reads_budgets and not did_read)

    def remove(self, node: NodeName) -> None:
        """The node is gone; its heartbeat is kept for when it comes again."""
        slot = self._slots.pop(node)
        self._obstacles[slot], self._fresh_until[slot], self._reads_budgets[slot] = _READY, math.inf, True
        self._right_until = -math.inf

    def beat(self, node: NodeName, renewed_s: float | None, now: float) -> bool:
        """Its Lease says that it beat then, None that there is no Lease; whether it is heard of again.

        Only the first beat is judged by the clock of its node: later ones are fresh because they are others.
        """
        last = self._beats.get(node)
        if renewed_s is None:
            self._beats.pop(node, None)
        elif last is None:
            self._beats[node] = renewed_s, min(renewed_s, now)
        elif last[0] != renewed_s:
            self._beats[node] = renewed_s, now
        slot = self._slots.get(node)
        if slot is None:
            return False
        before, until = float(self._fresh_until[slot]), self._fresh(node)
        self._fresh_until[slot] = until
        if (before < now) != (until < now) or until < before:
            self._right_until = -math.inf
        return before < now <= until and int(self._obstacles[slot]) in _MAY_DO

    def barred(self, now: float, *, needs_broker: bool, has_budgets: bool = False) -> list[Barred]:
        """Nodes that take no part, by reason. Asked for each pod, so computed again only after a change."""
        if now > self._right_until:
            heard = self._fresh_until >= now
            self._right_until = float(self._fresh_until.min(initial=math.inf, where=heard))
            self._barred.clear()
        needs = needs_broker, has_budgets
        if needs not in self._barred:
            self._barred[needs] = self._put_together(now, *needs)
        return self._barred[needs]

    def why_not(self, slot: Slot, now: float) -> Reason | None:
        return REASONS[self._obstacles[slot]] or (SILENT if self._fresh_until[slot] < now else None)

    def _fresh(self, node: NodeName) -> float:
        last = self._beats.get(node)
        return -math.inf if last is None else last[1] + self._silent_after_s

    def _put_together(self, now: float, needs_broker: bool, has_budgets: bool) -> list[Barred]:  # noqa: FBT001
        counted = self._obstacles
        if not needs_broker:
            counted = np.where(counted == _NO_BROKER, np.int8(_READY), counted)
        if has_budgets:
            counted = np.where((counted == _READY) & ~self._reads_budgets, np.int8(_NO_BUDGETS), counted)
        codes = np.unique(counted).tolist()
        found = [Barred(why, counted == code) for code in codes if (why := REASONS[code]) is not None]
        unheard = (self._fresh_until < now) & (counted == _READY)
        return [*found, Barred(SILENT, unheard)] if unheard.any() else found
