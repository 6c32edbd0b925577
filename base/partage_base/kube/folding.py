"""What the events of a list that is streamed come to. Pure.

Objects change while they are told, so one may come again, changed or deleted. Each is as its newest version says,
whatever came twice or late.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from partage_base.kube.events import Changed, Deleted
from partage_base.kube.unread import Unread

T = TypeVar("T")


class Fold(Generic[T]):
    """All objects that were told of."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Changed[T] | Deleted[T] | Unread] = {}
        """Those that are gone too, or what comes late would bring them back."""

    def __len__(self) -> int:
        return len(self._last)

    def take(self, event: Changed[T] | Deleted[T] | Unread) -> None:
        """The next event."""
        last = self._last.get(event.key)
        if last is None or not _is_older(event.version, last.version):
            self._last[event.key] = event

    @property
    def items(self) -> tuple[T, ...]:
        """Those that there are."""
        return tuple(each.item for each in self._last.values() if isinstance(each, Changed))

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Those that there are and that can't be read."""
        return tuple(each for each in self._last.values() if isinstance(each, Unread) and not each.is_gone)


def _is_older(version: str, than: str) -> bool:
    """Versions that are no numbers have no order; then what comes later is newer."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
