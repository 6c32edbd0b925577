"""Objects of one kind as they were seen last, by namespace and name. What comes late or twice changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from partage_base.kube.unread import Unread
from partage_scheduler.sharepods.objects import Key, OwnedPod, SharePod, key_of
from partage_scheduler.versions import Versions

T = TypeVar("T", SharePod, OwnedPod)


class Catalogue(Generic[T]):
    """A sink of what is followed; what the API server answers to our own writes is told to it as well."""

    def __init__(self, told: Callable[[Key], None]) -> None:
        """`told` hears of each change."""
        self._told = told
        self._items: dict[Key, T] = {}
        self._versions = Versions()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> T | None:
        return self._items.get(key)

    def listed(self, items: Iterable[T], _unread: Sequence[Unread] = (), /) -> None:
        """An object that can't be read counts as none."""
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

    def unread(self, which: Unread) -> None:
        key = Key(*which.key)
        if self._items.pop(key, None) is not None:
            self._told(key)
