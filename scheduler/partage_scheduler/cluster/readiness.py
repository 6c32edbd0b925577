"""Which nodes take part in device sharing, and why the others don't. By slot, in arrays.

A node takes part while its heartbeat is fresh, crishim is in force, and the node supports a version of allocations that
we write. Requests of a kind whose grants may guarantee part of a device also need the broker, which enforces these.
Requests with budgets or with movable memory need a node that supports them. Pods without device requests may run
anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.api import Inventory, NodeName, Slot
from partage_plugins.api.reasons import Reason
from partage_plugins.codecs.allocation import highest_common_version
from partage_plugins.codecs.critical import BUDGETS, CRIT, MOVABLE
from partage_scheduler.decision import FilteredNodes
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
    Reason("no-movable", "node(s) can't move memory off a card: upgrade partage there", lasts=True),
)
SAID_NOTHING, UNREADABLE, _NO_CRISHIM, _NO_VERSION, _NO_BROKER, _NO_BUDGETS, _NO_MOVABLE = range(1, len(REASONS))
_UNREAD: Final[Mapping[str, int]] = {BUDGETS: _NO_BUDGETS, MOVABLE: _NO_MOVABLE}
"""Obstacles by the feature that a node must support."""
_NOTHING: Final[frozenset[str]] = frozenset()
_MAY_DO: Final = (_READY, _NO_BROKER)
"""Obstacles with which a node still takes some requests."""
SILENT: Final = Reason("no-heartbeat", "node(s) had no heartbeat of the advertiser", lasts=True)


def obstacle_of(inventory: Inventory) -> int:
    """An index into `REASONS`; 0 if nothing keeps the node from taking part."""
    if not inventory.ready.crishim:
        return _NO_CRISHIM
    if highest_common_version(inventory.reads.allocation) is None:
        return _NO_VERSION
    return _READY if inventory.ready.broker else _NO_BROKER


class Readiness:
    def __init__(self, silent_after_s: float) -> None:
        self._silent_after_s = silent_after_s
        self._obstacles = np.zeros(0, dtype=np.int8)
        self._reads = {name: np.zeros(0, dtype=np.bool_) for name in CRIT}
        self._has_broker = np.zeros(0, dtype=np.bool_)
        self._fresh_until = np.zeros(0, dtype=np.float64)
        self._slots: dict[NodeName, Slot] = {}
        self._beats: dict[NodeName, tuple[float, float]] = {}
        """By node, known or not: renewal time of the last heartbeat, and when it was noticed."""
        self._barred: dict[tuple[bool, frozenset[str]], list[FilteredNodes]] = {}
        """By whether the broker is needed, and by the features that the node must support."""
        self._barred_to_claims: list[FilteredNodes] | None = None
        self._right_until = -math.inf

    def put(
        self, node: NodeName, slot: Slot, obstacle: int, *, reads: Collection[str], has_broker: bool = False
    ) -> bool:
        """Updates a node; returns whether it takes more requests than before."""
        if node not in self._slots:
            self._has_broker = grown(self._has_broker, slot + 1, fill=True)
            self._has_broker[slot] = False
            for name, readers in self._reads.items():
                self._reads[name] = grown(readers, slot + 1, fill=True)
                self._reads[name][slot] = False
            self._obstacles = grown(self._obstacles, slot + 1, _READY)
            self._fresh_until = grown(self._fresh_until, slot + 1, math.inf)
            self._obstacles[slot] = SAID_NOTHING
            self._slots[node] = slot
            self._fresh_until[slot] = self._fresh(node)
            self._right_until = -math.inf
        before, self._obstacles[slot] = int(self._obstacles[slot]), obstacle
        did_read = {name for name, readers in self._reads.items() if readers[slot]}
        does_read = self._reads.keys() & reads
        for name, readers in self._reads.items():
            readers[slot] = name in does_read
        had_broker, self._has_broker[slot] = bool(self._has_broker[slot]), has_broker
        if (before, did_read, had_broker) != (obstacle, does_read, has_broker):
            self._right_until = -math.inf
        if obstacle not in _MAY_DO:
            return has_broker and not had_broker
        return (obstacle == _READY != before) or before not in _MAY_DO or bool(does_read - did_read)

    def remove(self, node: NodeName) -> None:
        """Removes a node; its heartbeat is kept in case the node is added again."""
        slot = self._slots.pop(node)
        self._obstacles[slot], self._fresh_until[slot], self._has_broker[slot] = _READY, math.inf, True
        for readers in self._reads.values():
            readers[slot] = True
        self._right_until = -math.inf

    def beat(self, node: NodeName, renewed_s: float | None, now: float) -> bool:
        """Takes the renewal time of a node's Lease, None without a Lease; returns whether the node is back.

        Only the first heartbeat is judged by its node's clock: later ones are fresh because they differ.
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

    def barred(self, now: float, *, needs_broker: bool, reads: frozenset[str] = _NOTHING) -> list[FilteredNodes]:
        """Nodes that take no part, by reason. Called for each pod, so recomputed only after a change."""
        self._look(now)
        needs = needs_broker, reads
        if needs not in self._barred:
            self._barred[needs] = self._put_together(now, *needs)
        return self._barred[needs]

    def barred_to_claims(self, now: float) -> list[FilteredNodes]:
        """The same for pods that ask by claims alone: their limits need a broker, but no crishim."""
        self._look(now)
        if self._barred_to_claims is None:
            is_unknown = (self._obstacles == SAID_NOTHING) | (self._obstacles == UNREADABLE)
            rest = np.where(self._has_broker, np.int8(_READY), np.int8(_NO_BROKER))
            self._barred_to_claims = self._by_obstacle(now, np.where(is_unknown, self._obstacles, rest))
        return self._barred_to_claims

    def why_not(self, slot: Slot, now: float, *, by_claims: bool = False) -> Reason | None:
        """`by_claims`: all its cards are for claims, which need a broker, but no crishim."""
        obstacle = int(self._obstacles[slot])
        if by_claims and obstacle not in (SAID_NOTHING, UNREADABLE):
            obstacle = _READY if self._has_broker[slot] else _NO_BROKER
        return REASONS[obstacle] or (SILENT if self._fresh_until[slot] < now else None)

    def _fresh(self, node: NodeName) -> float:
        last = self._beats.get(node)
        return -math.inf if last is None else last[1] + self._silent_after_s

    def _put_together(self, now: float, needs_broker: bool, reads: frozenset[str]) -> list[FilteredNodes]:  # noqa: FBT001
        counted = self._obstacles
        if not needs_broker:
            counted = np.where(counted == _NO_BROKER, np.int8(_READY), counted)
        for name in sorted(reads):
            counted = np.where((counted == _READY) & ~self._reads[name], np.int8(_UNREAD[name]), counted)
        return self._by_obstacle(now, counted)

    def _look(self, now: float) -> None:
        """Drops cached results that are out of date."""
        if now > self._right_until:
            heard = self._fresh_until >= now
            self._right_until = float(self._fresh_until.min(initial=math.inf, where=heard))
            self._barred.clear()
            self._barred_to_claims = None

    def _by_obstacle(self, now: float, counted: NDArray[np.int8]) -> list[FilteredNodes]:
        codes = np.unique(counted).tolist()
        found = [FilteredNodes(why, counted == code) for code in codes if (why := REASONS[code]) is not None]
        unheard = (self._fresh_until < now) & (counted == _READY)
        return [*found, FilteredNodes(SILENT, unheard)] if unheard.any() else found
