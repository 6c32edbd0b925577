"""Pods on lost cards or paused nodes: since when, and which of them are to be evicted now.

No pod is evicted if its card recovers, or its node is resumed, in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from partage_plugins.api import GPU, Allocation, Card, CardId, HealthCause, Inventory, NodeName, PodUid
from partage_scheduler.cluster import Cluster
from partage_scheduler.objects import ApiPod


class EvictionSettings(Struct, frozen=True, kw_only=True):
    lost: bool = False
    """Whether pods on lost cards are evicted; their owners get an event in any case."""
    paused: bool = False
    """Whether pods with cards are evicted from paused nodes."""
    after_s: float = 300.0


class Notice(Struct, frozen=True, kw_only=True):
    pod: ApiPod
    trouble: Trouble
    is_news: bool
    """Its owner has not been notified yet."""
    is_due: bool
    """The pod is to be evicted now."""


class _Since(Struct, frozen=True):
    trouble: Trouble
    at: float


class Notices:
    def __init__(self, cluster: Cluster, settings: EvictionSettings) -> None:
        self._cluster, self._settings = cluster, settings
        self._since: dict[PodUid, _Since] = {}
        self._known: dict[NodeName, tuple[Inventory, Troubles]] = {}

    def look(self, now: float) -> list[Notice]:
        found = list(self._found())
        since = self._since
        self._since = {pod.uid: self._noticed(pod, trouble, now) for pod, trouble in found}
        return [self._notice(pod, trouble, since.get(pod.uid), now) for pod, trouble in found]

    def is_evicted(self, reason: TroubleCode) -> bool:
        return self._settings.lost if reason == LOST else self._settings.paused

    def _found(self) -> Iterator[tuple[ApiPod, Trouble]]:
        for node, troubles in self._troubled():
            for pod, allocation in self._cluster.holders(node):
                if not pod.is_going and (trouble := trouble_of(allocation, troubles)) is not None:
                    yield pod, trouble

    def _troubled(self) -> Iterable[tuple[NodeName, Troubles]]:
        """Nodes with such cards; each inventory is evaluated once."""
        known, self._known = self._known, {}
        for node in self._cluster.fleet.nodes:
            inventory, before = self._cluster.inventory(node.name), known.get(node.name)
            is_same = before is not None and before[0] is inventory
            self._known[node.name] = before if before and is_same else (inventory, troubles_of(inventory))
        return [(name, troubles) for name, (_, troubles) in self._known.items() if troubles]

    def _noticed(self, pod: ApiPod, trouble: Trouble, now: float) -> _Since:
        before = self._since.get(pod.uid)
        same = before is not None and before.trouble.reason == trouble.reason
        return _Since(trouble, before.at if before is not None and same else now)

    def _notice(self, pod: ApiPod, trouble: Trouble, before: _Since | None, now: float) -> Notice:
        waited_s = now - self._since[pod.uid].at
        return Notice(
            pod=pod,
            trouble=trouble,
            is_news=before is None or before.trouble != trouble,
            is_due=self.is_evicted(trouble.reason) and waited_s >= self._settings.after_s,
        )


TroubleCode = Literal["CardLost", "NodePaused"]
LOST: Final[TroubleCode] = "CardLost"
PAUSED: Final[TroubleCode] = "NodePaused"


class Trouble(Struct, frozen=True):
    """Why a pod that holds the card should leave."""

    reason: TroubleCode
    words: str


Troubles = Mapping[CardId, Trouble]


def troubles_of(inventory: Inventory) -> Troubles:
    part = inventory.part(GPU)
    found: dict[CardId, Trouble] = {}
    for card in part.cards if part is not None else ():
        if card.is_lost:
            found[card.id] = Trouble(LOST, f"card {card.id} is {card.condition}")
        elif card.cause == HealthCause.PAUSED:
            found[card.id] = Trouble(PAUSED, f"its node's cards are to rest: {_asked(card)}")
    return found


def _asked(card: Card) -> str:
    """The reason as the person who paused the node wrote it, without the prefix that marks a pause."""
    return (card.condition.why or "").removeprefix("paused: ")


def trouble_of(allocation: Allocation, troubles: Troubles) -> Trouble | None:
    """The pod's trouble; a lost card takes precedence over a paused node."""
    cards = (grant.card for grants in allocation.of(GPU).values() for grant in grants)
    found = [troubles[card] for card in cards if card in troubles]
    return min(found, key=lambda each: each.reason, default=None)
