"""Maps a pair of node and GPUID to a card, derived from SharePods and their pods.

A pair is created by its first pod, which waits for an idle card of the node. Once that pod is bound, all pods of the
pair are pinned to its card. The pair ends with its last pod, and the same GPUID may become another card.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from partage_plugins.api import GPU
from partage_plugins.api.keys import ALLOCATION, CARDS
from partage_plugins.codecs import decode_allocation
from partage_plugins.errors import DecodeError
from partage_scheduler.sharepods.objects import Key, OwnedPod, SharePod

_TRIES: Final = 1000


class Pair(NamedTuple):
    node: str
    gpuid: str


class Occupancy(NamedTuple):
    """The card of a pair according to one SharePod's pod. Where pods disagree, the lowest in sort order wins.

    A pod on a node sorts before one that is only pinned, whose annotation its owner may change; then the oldest wins.
    """

    is_pinned: bool
    since: str
    uid: str
    key: Key
    card: str
    """Empty while the pod waits for an idle card."""


class CardBook:
    def __init__(self, draw: Callable[[], str]) -> None:
        """`draw` generates a GPUID."""
        self._draw = draw
        self._pair_of: dict[Key, Pair] = {}
        self._of_pair: defaultdict[Pair, dict[Key, Occupancy]] = defaultdict(dict)
        self._named: defaultdict[Pair, set[Key]] = defaultdict(set)
        self._names: dict[Key, Pair] = {}

    def seen(self, key: Key, share: SharePod | None, pod: OwnedPod | None) -> set[Key]:
        """Records the current SharePod and pod; returns the other SharePods that this may affect."""
        told = self._forget(key)
        if share is None:
            return told
        if share.gpuid and share.node:
            self._names[key] = Pair(share.node, share.gpuid)
            self._named[self._names[key]].add(key)
        if share.gpuid and pod is not None and pod.is_of(share) and not pod.is_terminal:
            pair = Pair(pod.spec.node_name or share.node, share.gpuid)
            stamp = pod.metadata.creation_timestamp or ""
            self._pair_of[key] = pair
            self._of_pair[pair][key] = Occupancy(not pod.spec.node_name, stamp, pod.metadata.uid, key, _card(pod))
            told |= self._named.get(pair, set())
        return told - {key}

    def card(self, pair: Pair) -> str:
        """Empty if the pair has no card."""
        return min((each for each in self._of_pair.get(pair, {}).values() if each.card), default=_NONE).card

    def first(self, pair: Pair) -> Key | None:
        """The SharePod whose pod waits for the pair's card."""
        found = min((each for each in self._of_pair.get(pair, {}).values() if not each.card), default=None)
        return None if found is None else found.key

    def gpuid(self, node: str, card: str) -> str:
        """The name of a card; a new one that no card of the node has, if it has none yet."""
        found = [(min(each.values()), pair.gpuid) for pair, each in self._of_pair.items() if pair.node == node]
        names = [gpuid for _, gpuid in sorted(found) if self.card(Pair(node, gpuid)) == card]
        if names:
            return names[0]
        taken = {pair.gpuid for pair in (*self._of_pair, *self._named) if pair.node == node}
        return next(name for name in (self._draw() for _ in range(_TRIES)) if name not in taken)

    def _forget(self, key: Key) -> set[Key]:
        told = set[Key]()
        if (named := self._names.pop(key, None)) is not None:
            self._named[named].discard(key)
            if not self._named[named]:
                del self._named[named]
        if (pair := self._pair_of.pop(key, None)) is not None:
            del self._of_pair[pair][key]
            if not self._of_pair[pair]:
                del self._of_pair[pair]
            told |= self._named.get(pair, set())
        return told


_NONE: Final = Occupancy(is_pinned=True, since="", uid="", key=Key("", ""), card="")


def cards_of(pod: OwnedPod) -> tuple[str, ...]:
    """The cards that a pod was given; none if it has no readable allocation."""
    text = pod.metadata.annotations.get(ALLOCATION)
    if text is None:
        return ()
    try:
        allocation = decode_allocation(text, [GPU])
    except DecodeError:
        return ()
    grants = (grant for given in allocation.of(GPU).values() for grant in given)
    return tuple(sorted({grant.card for grant in grants}))


def _card(pod: OwnedPod) -> str:
    """The card that the pod is on or pinned to."""
    if pod.spec.node_name:
        return next(iter(cards_of(pod)), "")
    return pod.metadata.annotations.get(CARDS, "")
