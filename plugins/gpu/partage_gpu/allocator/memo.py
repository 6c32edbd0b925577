"""Results that one step of a decision computes and the next reuses: plans, possible cards, and the best card.

A cached result is used only if it would be the same when computed again, since neither the request nor the node has
changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

import numpy as np

from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.mix import Mix
from partage_gpu.allocator.needs import bytes_of
from partage_gpu.allocator.plan import Ask, Plan, excluding_part, planned, require_trusted
from partage_gpu.allocator.policies import BY_CPU
from partage_plugins.answers import Flags, Ints, Reals, Slots
from partage_plugins.api.names import Namespace, Slot
from partage_plugins.api.pods import PodRequest
from partage_plugins.cache import Cache

_MOST_BYTES: Final = 16 << 20
_PLAN_BYTES: Final = 2048
_MOST_SHAPES: Final = 128
_MOST_BITS: Final = 62
_POWERS: Final = 1 << np.arange(_MOST_BITS, dtype=np.int64)


class Same:
    """A key that is equal for requests with equal results; its hash is cached, as each pod needs it several times."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: Hashable) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Same) and self._parts == other._parts)


class Planned(NamedTuple):
    """A request as it is placed."""

    plan: Plan
    same: Same
    excluding: Ask | None
    """An ask that keeps others off more than it requests, which only some namespaces may."""


class Plans:
    """A cache of plans; most pods request what others requested."""

    def __init__(self, default: Mix, excluders: frozenset[Namespace] = frozenset()) -> None:
        self._default, self._excluders = default, excluders
        self._known = Cache[Hashable, Planned](_MOST_BYTES)
        self._last: tuple[PodRequest | None, Planned | None] = None, None

    def of(self, request: PodRequest) -> Planned:
        """The plan; refuses a pod whose policy does not exist, or that may not exclude others as it wants to."""
        last, known = self._last
        if last is request and known is not None:  # one decision makes several calls for the same request
            return known
        key = request.containers, request.needs.cpu_milli
        known = self._known.get(key)
        if known is None:
            known = self._made(request)
            self._known.put(key, known, _PLAN_BYTES + sum(bytes_of(ask.request) for ask in known.plan.asks))
        if known.excluding is not None:
            require_trusted(request.pod.namespace, known.excluding, self._excluders)
        self._last = request, known
        return known

    def _made(self, request: PodRequest) -> Planned:
        plan = planned(request, self._default)
        by_cpu = any(name in BY_CPU for mix in plan.mixes for name, _ in mix.weights)
        asks = tuple((ask.role, ask.request) for ask in plan.asks)
        return Planned(plan, Same((asks, plan.cpu_milli if by_cpu else 0)), excluding_part(plan.asks))


class Possible(NamedTuple):
    """The cards of some nodes that a pod's only ask may have, at some moment."""

    plan: Plan
    slots: Slots
    moment: int
    cards: Flags
    fits: Flags

    def of(self, cluster: Cluster, plan: Plan, slots: Slots) -> Flags | None:
        """The cards for all of these nodes, or for those that fit; None if not cached."""
        if plan is not self.plan or cluster.moment != self.moment:
            return None
        if slots is self.slots:
            return self.cards
        return self.cards[self.fits] if np.array_equal(self.slots[self.fits], slots) else None


class BestCards:
    """The highest ranked cards of each node for an ask of one card, with the moment of that ranking."""

    def __init__(self) -> None:
        self._by_shape: OrderedDict[Hashable, tuple[Ints, Ints]] = OrderedDict()

    def note(self, shape: Hashable, cluster: Cluster, slots: Slots, ranked: Reals) -> None:
        """Stores the rankings of all possible cards; others have a negative rank."""
        if ranked.shape[1] > _MOST_BITS:
            return
        places, moments = self._of(shape, len(cluster.changed))
        best = ranked.max(axis=1)
        equal = ((ranked == best[:, None]) & (ranked >= 0)) @ _POWERS[: ranked.shape[1]]
        places[slots], moments[slots] = equal, cluster.changed[slots]

    def note_one(self, shape: Hashable, cluster: Cluster, slot: Slot, best: Iterable[int]) -> None:
        """Stores the best cards of one node."""
        places, moments = self._of(shape, len(cluster.changed))
        if len(cluster.nodes[slot].cards) <= _MOST_BITS:
            places[slot], moments[slot] = sum([1 << place for place in best]), cluster.changed.item(slot)

    def best(self, shape: Hashable, cluster: Cluster, slot: Slot) -> list[int]:
        """The indices of the best cards; empty if not cached or outdated."""
        found = self._by_shape.get(shape)
        if found is None or slot >= len(found[0]) or found[1][slot] != cluster.changed[slot]:
            return []
        bits = int(found[0][slot])
        return [place for place in range(bits.bit_length()) if bits >> place & 1]

    def _of(self, shape: Hashable, size: int) -> tuple[Ints, Ints]:
        found = self._by_shape.get(shape)
        if found is None or len(found[0]) < size:
            if len(self._by_shape) >= _MOST_SHAPES:
                self._by_shape.popitem(last=False)
            grown = np.zeros(size, np.int64), np.full(size, -1, np.int64)
            if found is not None:
                grown[0][: len(found[0])], grown[1][: len(found[1])] = found
            found = self._by_shape[shape] = grown
        self._by_shape.move_to_end(shape)
        return found
