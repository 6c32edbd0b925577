"""The initial list of an informer: streamed if the API server offers that, else in pages.

A streamed list is the beginning of the watch that then continues with changes: one request, and no page is ever held.
Either way the list is at least as new as the call, and is complete or fails.

An API server that does not stream lists refuses, or ignores the parameter and watches without ever marking the end of
the list. The latter is detected by its silence or, if changes never cease, by the time it takes. Then the list comes in
pages, and so for an hour: trying again costs little where it is refused, but a while without a list where it is
ignored. It is retried at all because API servers are upgraded, and remembered per informer and not per server, because
one address may have several servers behind it, and those of extensions too. Any other failure leads to one try in
pages, since its cause may recur: a proxy that ends watches soon, or a cache that lags behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Final, Generic, TypeVar

import structlog

from partage_base.kube.errors import KubeError, MalformedResponse, StatusError, Unreachable
from partage_base.kube.events import Bookmark, Event, Fold
from partage_base.kube.server import ApiServer, Listing

T = TypeVar("T")
PAGE: Final = 1000
"""Fewer if so many exceed the bound of a response."""
SILENT_S: Final = 15.0
"""Silence that means no more will come: a response begins within 10 s, and an API server waits 3 s for its cache."""
WHOLE_S: Final = 60.0
"""For all of a streamed list, as an API server allows for a plain one."""
MOST_ITEMS: Final = 1_000_000
"""More than a cluster can hold, and less than our memory."""
ASK_AGAIN_S: Final = 3600.0
_NOT_OFFERED: Final = frozenset({400, 422})
_log = structlog.get_logger()


class _NotOffered(Exception):
    """The server does not stream lists; the message says how that was detected."""


class InitialList(Generic[T]):
    """The initial list of one informer; remembers what did not work."""

    def __init__(self, server: ApiServer, path: str, item_type: type[T], *, labels: str, fields: str) -> None:
        self._path = path
        self._list = partial(server.list, path, item_type, labels=labels, fields=fields, limit=PAGE)
        self._watch = partial(server.watch, path, item_type, labels=labels, fields=fields)
        self._not_offered_at_s = float("-inf")
        self._has_failed = False

    async def begun(self, since: str) -> tuple[Listing[T] | None, AsyncGenerator[Event[T]]]:
        """The watch from `since`; if that is empty, all items and the watch that continues from there."""
        if since:
            return None, self._watch(since=since)
        now_s = asyncio.get_running_loop().time()
        if not self._has_failed and now_s - self._not_offered_at_s >= ASK_AGAIN_S:
            try:
                return await self._streamed()
            except _NotOffered as error:
                self._not_offered_at_s = now_s
                _log.info("streamed lists are not offered; listing in pages", path=self._path, why=str(error))
        self._has_failed = False
        listing = await self._list()
        return listing, self._watch(since=listing.resource_version)

    async def _streamed(self) -> tuple[Listing[T], AsyncGenerator[Event[T]]]:
        watch = self._watch(since="")
        async with AsyncExitStack() as unless_whole:
            await unless_whole.enter_async_context(aclosing(watch))
            try:
                listing = await _whole(f"WATCH {self._path}", watch)
            except TimeoutError:
                raise _NotOffered("where the list ends was not said in time") from None
            except KubeError as error:
                if isinstance(error, StatusError) and error.status in _NOT_OFFERED:
                    raise _NotOffered(str(error)) from error
                self._has_failed = True
                raise
            unless_whole.pop_all()
        return listing, watch


async def _whole(call: str, watch: AsyncGenerator[Event[T]]) -> Listing[T]:
    """Collects a watch up to the end of the list; raises `TimeoutError` if that does not come."""
    fold: Fold[T] = Fold()
    now = asyncio.get_running_loop().time
    ends_at = now() + WHOLE_S
    async with asyncio.timeout(SILENT_S) as patience:
        async for event in watch:
            patience.reschedule(min(now() + SILENT_S, ends_at))
            if not isinstance(event, Bookmark):
                fold.take(event)
            elif event.ends_list:
                return Listing(fold.items, event.version, fold.undecodable)
            if len(fold) > MOST_ITEMS:
                raise MalformedResponse(call, f"a list of more than {MOST_ITEMS} items")
    raise Unreachable(call, "it ended before all items were told", may_be_done=False)
