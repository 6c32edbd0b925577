"""The cards of some nodes while one pod's asks are placed on them, one after another.

Nothing is counted in the cluster. Usage is computed over the pod's life as in `usage`: an init container may use what
the pod's app containers will have later, and the other way round.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from partage_gpu.allocator.beyond import MOST_BYTES, Held, left_with
from partage_gpu.allocator.bundles import finding
from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.needs import left_by_tags, needs_of, wanted_cards
from partage_gpu.allocator.plan import Ask
from partage_plugins.answers import Flags, Ints, Slots
from partage_plugins.api.gpu import NO_TAGS
from partage_plugins.api.limits import WHOLE_MILLI

_EXACT_BITS: Final = 53
_ROLES: Final = ("sidecar", "app", "init")


class Offer:
    """Cards of some nodes as they are, and as they would be with one ask on them. Rows are nodes, columns cards.

    Values are computed on first access, so a policy must read them before the ask is placed.
    """

    __slots__ = ("_after", "_ask", "cluster", "count", "possible", "request", "slots", "trial")

    def __init__(self, trial: Trial, possible: Flags, ask: Ask | None) -> None:
        """`possible` are the cards that the ask may have; no ask means a pod that needs no card."""
        self.trial, self.possible = trial, possible
        self._ask = ask
        self.cluster, self.slots = trial.cluster, trial.slots
        self.request = ask.request if ask else None
        self.count = ask.request.count if ask else 0
        self._after: Ints | None = None

    @property
    def level(self) -> Ints:
        return self.trial.level

    @property
    def after(self) -> Ints:
        """The level with the ask on the card; defined only where it is possible."""
        if self._after is None:
            self._after = self.trial.level_with(self._ask) if self._ask else self.level
        return self._after

    @property
    def hole(self) -> Ints:
        """The share that the ask would leave on the card."""
        return self.trial.hole(self._ask) if self._ask else self.level


class Trial:
    """Some nodes, with the asks of one pod that are placed on them."""

    __slots__ = ("_cpu_milli", "_held", "_idle", "_level", "_moves", "_put", "_sums", "cluster", "slots")

    def __init__(self, cluster: Cluster, slots: Slots, cpu_milli: int) -> None:
        self.cluster, self.slots = cluster, slots
        self._cpu_milli = cpu_milli
        self._put: list[tuple[Ask, Flags]] = []
        self._sums: dict[str, tuple[Ints, Ints]] = {}
        self._held: dict[str, Held] = {}
        """Memory placed on oversubscribed cards, and on others if the cluster has any such cards."""
        self._moves = False
        """Whether any of it is movable."""
        self._level: Ints | None = None
        self._idle: Flags | None = None

    @property
    def is_untouched(self) -> bool:
        """Whether the cards are as they are in the cluster."""
        return not self._put

    @property
    def level(self) -> Ints:
        """The smaller of each card's remaining share and memory, in milli; 0 if no pod may be given the card."""
        if self._level is None:
            self._level = self.cluster.level.take(self.slots, 0)
        return self._level

    @property
    def idle(self) -> Flags:
        idle = self._idle
        if idle is None:
            idle = self._idle = np.equal(self.cluster.holders.take(self.slots, 0), 0)
        return idle

    @property
    def cpu_before(self) -> Ints:
        """CPU of the nodes without the pod; the first ask takes all CPU that the pod needs."""
        return self.cpu_after if self._put else self.cluster.cpu_left.take(self.slots)

    @property
    def cpu_after(self) -> Ints:
        """CPU of the nodes with the pod."""
        return self.cluster.cpu_left.take(self.slots) - self._cpu_milli

    @property
    def _share(self) -> Ints:
        return self.cluster.share_left.take(self.slots, 0)

    @property
    def _memory(self) -> Ints:
        return self.cluster.memory_left.take(self.slots, 0)

    def hole(self, ask: Ask) -> Ints:
        """The share that the ask would leave on each card."""
        return self._share - ask.request.share_milli

    def level_with(self, ask: Ask) -> Ints:
        """The level of each possible card with the ask on it."""
        if not self._put and ask.request.memory_follows_share and not self._may_move(ask):
            return self.level - ask.request.share_milli
        return self._level_by_sums(ask)

    def possible(self, ask: Ask) -> Flags:
        """The cards that an ask may have."""
        wanted, cluster, slots = ask.request, self.cluster, self.slots
        share, memory = self._room(ask.role)
        possible: Flags = share >= wanted.least_share_milli
        if self._may_move(ask):
            possible &= self._needs(ask) <= MOST_BYTES
            possible &= self._left_with(ask) >= 0
        else:
            possible &= memory >= self._needs(ask)
        if wanted.cards or wanted.cards_not:
            possible &= wanted_cards(cluster, wanted, slots)
        if cluster.tags.any or wanted.tags != NO_TAGS:
            possible &= left_by_tags(cluster, wanted.tags, slots)
        if wanted.idle_cards:
            possible &= np.equal(cluster.holders.take(slots, 0), 0)
        for other, chosen in self._put:
            if other.request.tags.exclusion != wanted.tags.exclusion or is_kept_off(ask, other):
                possible &= ~chosen
        if wanted.bundles:
            possible &= finding(cluster, wanted, slots, possible)[:, None]
        return possible

    def put(self, ask: Ask, chosen: Flags) -> None:
        """Places the ask on these cards."""
        if not self._sums:
            nothing = np.zeros_like(self.level)
            self._sums = dict.fromkeys(_ROLES, (nothing, nothing))
        self._level = np.where(chosen, self._level_by_sums(ask), self.level)
        share, memory = self._added(ask)
        had_share, had_memory = self._sums[ask.role]
        self._sums[ask.role] = np.where(chosen, share, had_share), np.where(chosen, memory, had_memory)
        if self.cluster.beyond:
            had, has = self._held_by_role()[ask.role], self._held_with(ask)[ask.role]
            pairs = zip(has, had, strict=True)
            self._held = {**self._held_by_role(), ask.role: Held(*(np.where(chosen, *pair) for pair in pairs))}
            self._moves |= ask.request.movable
        self._idle = self.idle & ~chosen
        self._put.append((ask, chosen))

    def _room(self, role: str) -> tuple[Ints, Ints]:
        """What is left for a container of a role: only sidecars run beside an init container."""
        if not self._sums:
            return self._share, self._memory
        used_share, used_memory = self._sums["sidecar"]
        if role != "init":
            used_share, used_memory = used_share + self._sums["app"][0], used_memory + self._sums["app"][1]
        return self._share - used_share, self._memory - used_memory

    def _may_move(self, ask: Ask) -> bool:
        """Whether what is left of memory can't be computed by sums alone."""
        return bool(self.cluster.beyond) and (ask.request.movable or self._moves)

    def _held_by_role(self) -> dict[str, Held]:
        if self._held:
            return self._held
        nothing = np.zeros_like(self.level)
        return dict.fromkeys(_ROLES, Held(nothing, nothing, nothing))

    def _held_with(self, ask: Ask) -> dict[str, Held]:
        """The memory of all roles with the ask on each card; without the ask on cards that it does not want."""
        held, needs = self._held_by_role(), self._needs(ask)
        asked = np.where(needs <= MOST_BYTES, needs, 0)
        more = held[ask.role].with_one(asked, movable=ask.request.movable, is_init=ask.role == "init")
        return {**held, ask.role: more}

    def _left_with(self, ask: Ask) -> Ints:
        """Memory left with the ask on each card; negative where it does not fit."""
        return left_with(self.cluster.left_on(self.slots), self._held_with(ask))

    def _needs(self, ask: Ask) -> Ints:
        return needs_of(self.cluster, ask.request).take(self.cluster.make.take(self.slots, 0))

    def _added(self, ask: Ask) -> tuple[Ints, Ints]:
        """The sums of the ask's role with it on each card."""
        share, memory = self._sums[ask.role]
        if ask.role == "init":
            return np.maximum(share, ask.request.share_milli), np.maximum(memory, self._needs(ask))
        return share + ask.request.share_milli, memory + self._needs(ask)

    def _level_by_sums(self, ask: Ask) -> Ints:
        """The level of each card with the ask on it."""
        if not self._sums:
            share, memory = self._share - ask.request.share_milli, self._memory - self._needs(ask)
        else:
            sums = {**self._sums, ask.role: self._added(ask)}
            share = self._share - sums["sidecar"][0] - np.maximum(sums["app"][0], sums["init"][0])
            memory = self._memory - sums["sidecar"][1] - np.maximum(sums["app"][1], sums["init"][1])
        if self._may_move(ask):
            memory = self._left_with(ask)
        total = self.cluster.total_bytes[self.cluster.make[self.slots]]
        unit = (total >> _EXACT_BITS) + 1  # 1, except for cards so large that a thousand times their bytes overflows
        level: Ints = np.minimum(share, memory // unit * WHOLE_MILLI // (total // unit))
        return np.maximum(level, 0)


def is_kept_off(ask: Ask, other: Ask) -> bool:
    """Whether an ask can't share a card with another of its pod, as it wants one that is otherwise idle."""
    return ask.request.idle_cards and ("sidecar" in (ask.role, other.role) or ask.role == other.role == "app")
