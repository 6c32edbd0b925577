"""Plain calls to the API server: each is sent once, with a deadline for all of it and a bound on its response.

A response is decoded into the type that is asked for (unknown fields are ignored; `msgspec.Raw` gives the bytes), or
raises one of `errors`. Requests are never retried here: only the caller knows whether that is right, and has `Backoff`
for the delay. Watches have connections of their own, so they never delay a call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeVar

import msgspec

from partage_base.kube import binary
from partage_base.kube.access import Access
from partage_base.kube.answers import decoded
from partage_base.kube.errors import TooLarge, Unreachable
from partage_base.kube.events import Event, Lines, event_of
from partage_base.kube.http1 import Request
from partage_base.kube.pages import Batch, Page, page_of
from partage_base.kube.paths import eviction_path
from partage_base.kube.transport import Transport
from partage_base.kube.undecodable import Undecodable, skipped

T = TypeVar("T")
PatchKind = Literal["merge", "strategic", "json"]
MOST_ANSWER_BYTES: Final = 16 << 20
"""A page of a list, or one object: more than the largest has, and all that one call ever holds."""
_PATCHES: Final[dict[PatchKind, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_ANY: Final = "application/json, */*"
_WATCH_LASTS_S: Final = 300.0
_WATCH_ENDS_WITHIN_S: Final = 30.0
"""A watch that outlasts its timeout by this much is considered dead."""
TURN_S: Final = 0.01
"""How long a watch may process events at a stretch before it yields to other tasks: they come in hundreds."""


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """All items, as of a version from which a watch may continue."""

    items: tuple[T, ...]
    resource_version: str
    undecodable: tuple[Undecodable, ...] = ()
    """Existing objects that can't be decoded."""


class _DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    preconditions: dict[str, str] | msgspec.UnsetType
    grace_period_seconds: int | msgspec.UnsetType
    kind: str = "DeleteOptions"
    api_version: str = "v1"


class ApiServer:
    """The API server, called with the credentials of `access`."""

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str,
        deadline_s: float = 10.0,
        connections: int = 4,
        most_answer_bytes: int = MOST_ANSWER_BYTES,
    ) -> None:
        """Pool size for calls; calls above it wait for a connection, within their deadlines."""
        self._transport = Transport(
            access, user_agent=user_agent, connections=connections, most_answer_bytes=most_answer_bytes
        )
        self._deadline_s, self._most_answer_bytes = deadline_s, most_answer_bytes

    async def close(self) -> None:
        """Closes every connection; calls in flight raise `Unreachable`."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def get(self, path: str, type_: type[T]) -> T:
        return await self._call(Request("GET", path), type_)

    async def text(self, path: str) -> bytes:
        """A response that is not JSON, such as a container's log."""
        return await self._transport.answer(Request("GET", path, accept=_ANY), deadline_s=self._deadline_s)

    async def create(self, path: str, body: object, type_: type[T], *, within_s: float = 0) -> T:
        """Posts `body` to a collection or a subresource.

        After `within_s` the API server itself aborts the request, whether or not the caller still waits; 0 leaves the
        limit to the server.
        """
        query = _query(timeout=f"{round(1000 * within_s)}ms" if within_s else "")
        return await self._call(Request("POST", path, query, body=msgspec.json.encode(body)), type_)

    async def replace(self, path: str, body: object, type_: type[T]) -> T:
        """Puts `body`; with a resource version in it, raises `Conflict` if the object changed meanwhile."""
        return await self._call(Request("PUT", path, body=msgspec.json.encode(body)), type_)

    async def patch(
        self, path: str, body: object, type_: type[T], *, how: PatchKind = "merge", within_s: float = 0
    ) -> T:
        """After `within_s` the API server itself aborts the request; 0 leaves the limit to the server."""
        query = _query(timeout=f"{round(1000 * within_s)}ms" if within_s else "")
        request = Request("PATCH", path, query, body=msgspec.json.encode(body), content_type=_PATCHES[how])
        return await self._call(request, type_)

    async def add_finalizer(self, path: str, finalizer: str, type_: type[T]) -> T:
        """Adds a finalizer to the current object and keeps every other byte, which a patch does not.

        Raises `Conflict` if the object changed meanwhile.
        """
        request = Request("GET", path, accept=binary.TYPE)
        body = await self._transport.answer(request, deadline_s=self._deadline_s)
        changed = binary.with_finalizer(request.call, bytes(body), finalizer)
        return await self._call(Request("PUT", path, body=changed, content_type=binary.TYPE), type_)

    async def delete(self, path: str, *, uid: str = "", grace_s: int | None = None) -> None:
        """Deletes one object; with a `uid`, raises `Conflict` if it is another one.

        `grace_s` replaces the object's own grace period; if it is already being deleted, it can only shorten that.
        """
        options = _DeleteOptions(
            preconditions={"uid": uid} if uid else msgspec.UNSET,
            grace_period_seconds=msgspec.UNSET if grace_s is None else grace_s,
        )
        body = None if not uid and grace_s is None else msgspec.json.encode(options)
        await self._call(Request("DELETE", path, body=body), msgspec.Raw)

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        """Evicts this pod; raises `Throttled` while that would violate a disruption budget."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        await self.create(eviction_path(namespace, name), body, msgspec.Raw)

    async def list(
        self, path: str, item_type: type[T], *, labels: str = "", fields: str = "", limit: int = 0
    ) -> Listing[T]:
        """All objects of a collection that match the selectors, `limit` at a time; each page has its own deadline.

        A page that is too large is requested again in smaller ones, down to one object. An object that is still too
        large, or can't be decoded, is skipped and named.
        """
        items: list[T] = []
        left_out: list[Undecodable] = []
        batch = Batch(limit, most_bytes=self._most_answer_bytes)
        onward = ""
        while True:
            query = _query(
                labelSelector=labels, fieldSelector=fields, limit=str(batch.count or ""), **{"continue": onward}
            )
            try:
                page = await self._page(Request("GET", path, query), item_type, batch)
            except TooLarge as error:
                if batch.halve():
                    continue
                page = _page_without(error)
            items += page.items
            left_out += page.undecodable
            onward = page.onward
            if not onward:
                return Listing(tuple(items), page.version, tuple(left_out))

    async def watch(  # noqa: PLR0913  (which, from when, and for how long)
        self,
        path: str,
        item_type: type[T],
        *,
        since: str,
        labels: str = "",
        fields: str = "",
        lasts_s: float | None = None,
    ) -> AsyncGenerator[Event[T]]:
        """Changes after the version `since`, until the server ends the watch: by default after 5 to 10 minutes.

        With `since` empty it first yields all items, at least as new as the call, up to a bookmark with `ends_list`.
        API servers that don't offer that refuse, or never send that bookmark (`lists` handles both).

        Raises as calls do, and `Gone` if `since` is too old. Close it (`contextlib.aclosing`) to end it sooner.
        """
        lasts_s = lasts_s or _WATCH_LASTS_S * (1 + random.random())  # noqa: S311  (so that not all end at once)
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=since,
            sendInitialEvents="" if since else "true",
            resourceVersionMatch="" if since else "NotOlderThan",
            timeoutSeconds=str(max(1, int(lasts_s))),
            labelSelector=labels,
            fieldSelector=fields,
        )
        call = f"WATCH {path}"
        lines = Lines(call)
        most_s = lasts_s + _WATCH_ENDS_WITHIN_S
        pieces = self._transport.pieces(Request("GET", path, query), deadline_s=self._deadline_s, lasts_s=most_s)
        now = asyncio.get_running_loop().time
        async with aclosing(pieces):
            async for piece in pieces:
                until = now() + TURN_S
                for line in lines.take(piece):
                    if now() >= until:
                        await asyncio.sleep(0)
                        until = now() + TURN_S
                    yield event_of(call, line, item_type)
        if not lines.is_between:
            raise Unreachable(call, "it was cut in the middle of a line", may_be_done=False)

    async def _page(self, request: Request, item_type: type[T], batch: Batch) -> Page[T]:
        body = await self._transport.answer(request, deadline_s=self._deadline_s)
        page = page_of(request.call, body, item_type)
        batch.came(len(page.items) + len(page.undecodable), len(body))
        return page

    async def _call(self, request: Request, type_: type[T]) -> T:
        return decoded(request.call, await self._transport.answer(request, deadline_s=self._deadline_s), type_)


def _page_without(error: TooLarge) -> Page[Any]:
    """The page of one object that is too large, decoded from its beginning."""
    found = skipped(error.head, error.why)
    if found is None:
        raise error
    return Page((), (found.undecodable,), found.version, found.onward)


def _query(**parts: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in parts.items() if value)
