"""All known state: SharePods, their pods, their cards, and the work queue. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from partage_base.kube.undecodable import Undecodable
from partage_scheduler.sharepods.cards import CardBook
from partage_scheduler.sharepods.objects import Key, OwnedPod, SharePod, key_of
from partage_scheduler.versions import Versions

FIRST_REST_S: Final = 0.5
LONGEST_REST_S: Final = 60.0
T = TypeVar("T", SharePod, OwnedPod)


class Lister(Generic[T]):
    """Latest known objects of one kind. Late or repeated events change nothing.

    A sink of a watch; the API server's answers to our own writes are passed to it as well.
    """

    def __init__(self, told: Callable[[Key], None]) -> None:
        """`told` is called for each change."""
        self._told = told
        self._items: dict[Key, T] = {}
        self._versions = Versions()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> T | None:
        return self._items.get(key)

    def listed(self, items: Iterable[T], _unread: Sequence[Undecodable] = (), /) -> None:
        """An unreadable object counts as absent."""
        there = {item.metadata.uid: item for item in items}
        for known in [each for each in self._items.values() if each.metadata.uid not in there]:
            self.gone(known)
        for item in there.values():
            self.changed(item)

    def changed(self, item: T) -> None:
        if self._versions.is_news(item.metadata.uid, item.metadata.resource_version):
            self._items[key_of(item)] = item
            self._told(key_of(item))

    def gone(self, item: T) -> None:
        self._versions.gone(item.metadata.uid)
        known = self._items.get(key_of(item))
        if known is not None and known.metadata.uid == item.metadata.uid:
            del self._items[key_of(item)]
            self._told(key_of(item))

    def undecodable(self, which: Undecodable) -> None:
        key = Key(*which.key)
        if self._items.pop(key, None) is not None:
            self._told(key)


class WorkQueue:
    """A work queue. A changed key is ready at once; a failed one backs off, even if it changes meanwhile."""

    def __init__(self) -> None:
        self._ready: OrderedDict[Key, None] = OrderedDict()
        self._resting: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        if key not in self._resting:
            self._ready[key] = None

    def next(self, now: float) -> Key | None:
        """Removes and returns the key that has been ready longest."""
        for key in [key for key, until in self._resting.items() if until <= now]:
            del self._resting[key]
            self._ready[key] = None
        return self._ready.popitem(last=False)[0] if self._ready else None

    def due(self, now: float) -> float | None:
        """When the next key is ready; None if only a change can add one."""
        return now if self._ready else min(self._resting.values(), default=None)

    def went_well(self, key: Key) -> None:
        self._failures.pop(key, None)

    def failed(self, key: Key, now: float) -> None:
        count = self._failures[key] = min(self._failures.get(key, 0) + 1, 16)
        self._ready.pop(key, None)
        self._resting[key] = now + min(LONGEST_REST_S, FIRST_REST_S * 2 ** (count - 1))

    def forget(self, key: Key) -> None:
        for each in (self._ready, self._resting, self._failures):
            each.pop(key, None)


class State:
    def __init__(self, draw: Callable[[], str]) -> None:
        """`draw` generates a GPUID."""
        self.shares = Lister[SharePod](self._heard)
        self.pods = Lister[OwnedPod](self._heard)
        self.cards = CardBook(draw)
        self.work_queue = WorkQueue()

    def _heard(self, key: Key) -> None:
        """Queues the SharePod and all others of the same card, which its change may affect."""
        for each in (key, *self.cards.seen(key, self.shares.get(key), self.pods.get(key))):
            self.work_queue.add(each)
