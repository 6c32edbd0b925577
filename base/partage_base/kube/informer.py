"""A list that is kept current by a watch, for ever.

First all items are told (how they are asked for is in `lists`), then every change. What breaks is mended without a word
as long as nothing is missed: a watch that ends, is cut once or is too old to go on from. When the API server can't be
reached or refuses, that is told once, and the next that is told is the whole list again. Nothing is hammered: whatever
did not get further waits longer. An object that can't be read is told as such and keeps no other back.
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
from partage_base.kube.lists import Beginning
from partage_base.kube.server import ApiServer
from partage_base.kube.unread import Unread

T = TypeVar("T")
LONG_S: Final = 30.0
"""A watch that ends after that has done its work, even if there was nothing to tell."""


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """All items there are; whatever is not among them is gone."""

    items: tuple[T, ...]
    unread: tuple[Unread, ...] = ()
    """Those that are there too, and can't be read."""


class Lost(msgspec.Struct, frozen=True):
    """What was told may be out of date from now on; the next that is told is `Listed`."""

    error: KubeError


Seen = Listed[T] | Changed[T] | Deleted[T] | Unread | Lost
"""What following tells."""


class _Place:
    """How far one is, and what has been said about it."""

    def __init__(self) -> None:
        self.since = ""
        """The version to go on from; empty where everything must be listed."""
        self.has_moved = False
        """Whether the present try got further."""
        self._is_lost = False
        self._was_cut = False

    def listed(self, version: str) -> None:
        self.since, self._is_lost = version, False

    def moved(self, version: str) -> None:
        self.since, self.has_moved, self._was_cut = version, True, False

    def failed(self, error: KubeError) -> bool:
        """Whether that must be told: not where history is only too old, nor the first time that a watch fails."""
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
    """Tells for ever; ends only by being closed or cancelled. `backoff` is this one's own."""
    place, beginning = _Place(), Beginning(server, path, item_type, labels=labels, fields=fields)
    while True:
        failure: KubeError | None = None
        place.has_moved = False
        try:
            listing, watch = await beginning.begun(place.since)
            async with aclosing(watch), aclosing(_moving(watch, place, backoff)) as changes:
                if listing is not None:
                    place.listed(listing.resource_version)
                    yield Listed(listing.items, listing.unread)
                listing = None  # it would be kept, as it stood then, for as long as the watch lasts
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
) -> AsyncGenerator[Changed[T] | Deleted[T] | Unread]:
    """What a watch tells, but for its bookmarks; keeps `place`."""
    began_at = asyncio.get_running_loop().time()
    async for event in watch:
        place.moved(event.version or place.since)
        backoff.reset()
        if not isinstance(event, Bookmark):
            yield event
    if not place.has_moved and asyncio.get_running_loop().time() - began_at >= LONG_S:
        place.moved(place.since)
        backoff.reset()
