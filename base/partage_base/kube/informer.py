"""An informer: lists once, then follows a watch.

First it yields all items (`lists` reads them), then every change. Broken watches are resumed silently as long as no
event can have been missed: a watch that ends, is cut once, or is too old to resume. If the API server can't be reached
or refuses, it yields that once, and next the whole list again. Whatever makes no progress backs off longer. An object
that can't be decoded is yielded as such and blocks no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final, Generic, TypeVar

import msgspec

from partage_base.kube.backoff import Backoff
from partage_base.kube.errors import Gone, KubeError
from partage_base.kube.events import Bookmark, Changed, Deleted, Event
from partage_base.kube.lists import InitialList
from partage_base.kube.server import ApiServer
from partage_base.kube.undecodable import Undecodable

T = TypeVar("T")
LONG_S: Final = 30.0
"""A watch that lasted longer than that counts as success, even without an event."""


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """All existing items; an item that is not in the list is gone."""

    items: tuple[T, ...]
    undecodable: tuple[Undecodable, ...] = ()
    """Existing objects that can't be decoded."""


class Lost(msgspec.Struct, frozen=True):
    """Earlier items may be stale from now on; the next event is `Listed`."""

    error: KubeError


Seen = Listed[T] | Changed[T] | Deleted[T] | Undecodable | Lost
"""An event of `follow`."""


class _Place:
    """The position in the watch, and whether a failure was already reported."""

    def __init__(self) -> None:
        self.since = ""
        """The version to resume from; empty if everything must be listed."""
        self.has_moved = False
        """Whether the present try made progress."""
        self._is_lost = False
        self._was_cut = False

    def listed(self, version: str) -> None:
        self.since, self._is_lost = version, False

    def moved(self, version: str) -> None:
        self.since, self.has_moved, self._was_cut = version, True, False

    def failed(self, error: KubeError) -> bool:
        """Whether to report `error`: not if the version is merely too old, nor the first time that a watch fails."""
        if isinstance(error, Gone):
            self.since = ""
            return False
        is_silent, self._was_cut = bool(self.since) and not self._was_cut, True
        if is_silent:
            return False
        self.since = ""
        is_told, self._is_lost = self._is_lost, True
        return not is_told


async def follow(  # noqa: PLR0913  (what to follow, and by what to wait)
    server: ApiServer,
    path: str,
    item_type: type[T],
    *,
    labels: str = "",
    fields: str = "",
    backoff: Backoff,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncGenerator[Seen[T]]:
    """Yields events forever; ends only by being closed or cancelled. `backoff` must not be shared."""
    place, beginning = _Place(), InitialList(server, path, item_type, labels=labels, fields=fields)
    while True:
        failure: KubeError | None = None
        place.has_moved = False
        try:
            listing, watch = await beginning.begun(place.since)
            async with aclosing(watch), aclosing(_moving(watch, place, backoff)) as changes:
                if listing is not None:
                    place.listed(listing.resource_version)
                    yield Listed(listing.items, listing.undecodable)
                listing = None  # otherwise this old state stays in memory for as long as the watch lasts
                async for change in changes:
                    yield change
        except KubeError as error:
            failure = error
            if place.failed(error):
                yield Lost(error)
        if failure is not None or not place.has_moved:
            await sleep(backoff.after(failure))


async def _moving(
    watch: AsyncGenerator[Event[T]], place: _Place, backoff: Backoff
) -> AsyncGenerator[Changed[T] | Deleted[T] | Undecodable]:
    """The events of a watch without its bookmarks; updates `place`."""
    began_at = asyncio.get_running_loop().time()
    async for event in watch:
        place.moved(event.version or place.since)
        backoff.reset()
        if not isinstance(event, Bookmark):
            yield event
    if not place.has_moved and asyncio.get_running_loop().time() - began_at >= LONG_S:
        place.moved(place.since)
        backoff.reset()
