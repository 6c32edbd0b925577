"""Which card a pair of node and GPUID is, derived from SharePods and their pods.

A pair comes to be with its first pod, which waits for an idle card of the node. From when that pod is bound, all pods
of the pair are pinned to its card. With the last pod the pair is gone, and the same GPUID may become another card.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from partage_plugins.codecs import decode_allocation
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.keys import ALLOCATION, CARDS
from partage_scheduler.sharepods.objects import Key, OwnedPod, SharePod

_TRIES: Final = 1000


class Pair(NamedTuple):
    node: str
    gpuid: str


class Occupancy(NamedTuple):
    """What one SharePod's pod says about a pair. Where they differ, the least is believed.

    That is a pod on a node before one that is only pinned, whose annotation its owner may change; then the oldest.
    """

    is_pinned: bool
    since: str
    uid: str
    key: Key
    card: str
    """Empty while the pod waits for an idle one."""


class CardBook:
    def __init__(self, draw: Callable[[], str]) -> None:
        """`draw` makes up a GPUID."""
        self._draw = draw
        self._pair_of: dict[Key, Pair] = {}
        self._of_pair: defaultdict[Pair, dict[Key, Occupancy]] = defaultdict(dict)
        self._named: defaultdict[Pair, set[Key]] = defaultdict(set)
        self._names: dict[Key, Pair] = {}

    def seen(self, key: Key, share: SharePod | None, pod: OwnedPod | None) -> set[Key]:
        """How a SharePod and its pod stand now; the SharePods for which that may change something."""
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
        """Empty where the pair has none."""
        return min((each for each in self._of_pair.get(pair, {}).values() if each.card), default=_NONE).card

    def first(self, pair: Pair) -> Key | None:
        """Whose pod waits for the pair's card."""
        found = min((each for each in self._of_pair.get(pair, {}).values() if not each.card), default=None)
        return None if found is None else found.key

    def gpuid(self, node: str, card: str) -> str:
        """The name that a card has; one that no card of the node has, where it has none yet."""
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
    """The cards that a pod was given; none where it has no allocation, or one that can't be read."""
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
    """Where it is, or where it is pinned to."""
    if pod.spec.node_name:
        return next(iter(cards_of(pod)), "")
    return pod.metadata.annotations.get(CARDS, "")
