"""Which reservations are deleted: those whose card no pod has used for a while, and those that failed.

A reservation is withheld before it is deleted: from then on no pod gets its card. That is final, since names are not
reused. Timers restart with the process, so a card is returned late rather than early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from partage_plugins.api import GPU, CardId, NodeName
from partage_scheduler.cluster import Cluster
from partage_scheduler.reservation.pods import Reservation

PATIENCE_S: Final = 60.0
"""Time for a reservation to be placed, to start, and to appear in the inventory."""


class Review(Struct, frozen=True, kw_only=True):
    """What to do about the existing reservations."""

    withheld: frozenset[str]
    """Names of reservations whose cards no pod may be given."""
    leave: tuple[Reservation, ...]
    """To be deleted."""
    coming: Mapping[NodeName, int]
    """Cards that will soon be shared, by node."""
    unbound: Mapping[NodeName, int]
    """Those of them whose reservation kube-scheduler has not bound yet."""


class _Reserved(Struct, frozen=True):
    node: NodeName
    card: CardId


class Upkeep:
    def __init__(self, cluster: Cluster, *, quiet_s: float) -> None:
        self._cluster, self._quiet_s = cluster, quiet_s
        self._since: dict[str, tuple[str, float]] = {}
        """By name: its unused state, and since when."""
        self._given_up: frozenset[str] = frozenset()

    def review(self, reservations: Iterable[Reservation], now: float) -> Review:
        """`reservations` is a complete, fresh list."""
        there = {each.name: each for each in reservations}
        cards = self._cards()
        since, self._since = self._since, {}
        leave: list[Reservation] = []
        coming, unbound = Counter[NodeName](), Counter[NodeName]()
        withheld = set(cards.keys() - there.keys())
        for name, each in there.items():
            state = self._state(cards.get(name))
            began = since.get(name, ("", 0.0))
            if state:
                self._since[name] = began if began[0] == state else (state, now)
            if each.is_leaving or each.has_ended or name in self._given_up or self._is_over(name, now):
                withheld.add(name)
                if not each.is_leaving:
                    leave.append(each)
            elif state == _COMING and each.node:
                coming[each.node] += 1
                unbound[each.node] += not each.is_bound
        self._given_up = frozenset(withheld)
        return Review(withheld=self._given_up, leave=tuple(leave), coming=coming, unbound=unbound)

    def has_cards(self) -> bool:
        """Whether any inventory lists a reserved card."""
        return bool(self._cards())

    def _is_over(self, name: str, now: float) -> bool:
        state, since = self._since.get(name, ("", now))
        return bool(state) and now - since >= (self._quiet_s if state == _IDLE else PATIENCE_S)

    def _state(self, reserved: _Reserved | None) -> str:
        """Empty if the card is in use."""
        if reserved is None:
            return _COMING
        return "" if reserved.card in self._held_on(reserved.node) else _IDLE

    def _cards(self) -> dict[str, _Reserved]:
        return {
            card.reservation: _Reserved(node.name, card.id)
            for node in self._cluster.fleet.nodes
            if (part := self._cluster.inventory(node.name).part(GPU)) is not None
            for card in part.cards
            if card.reservation is not None
        }

    def _held_on(self, node: NodeName) -> set[CardId]:
        return {usage.card for placed in self._cluster.placed_pods.on(node) for usage in placed.usages}


_COMING, _IDLE = "coming", "idle"
