"""A small API server on a real socket, which can also misbehave.

    async with FakeApi() as api:
        api.objects.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        api.expect(Refuse(429, retry_after="2"), method="PATCH")   # the next PATCH; times=3 the next three
        ...
        assert api.count("PATCH") == 1

Lists, pages, watches with bookmarks and all plain verbs work as in the real one, within the limits of `fake_objects`.
`stop()` and `start()` simulate an outage: the port stays the same. One loop serves a thousand clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from support.fake_answers import No, Object
from support.fake_faults import Asked, CutShort, CutWatch, Drop, Fault, Flood, Hang, Late, Refuse, Say, Weather
from support.fake_objects import COLLECTIONS, Change, Objects
from support.fake_watchers import LATER_S, Lists, Watcher, bookmark, line_of

__all__ = [
    "Asked",
    "CutShort",
    "CutWatch",
    "Drop",
    "FakeApi",
    "Fault",
    "Flood",
    "Hang",
    "Late",
    "Lists",
    "Refuse",
    "Say",
]


@dataclass
class _Expected:
    fault: Fault
    method: str
    under: str
    times: int

    def fits(self, asked: Asked) -> bool:
        return self.times > 0 and self.method in {"", asked.verb} and asked.path.startswith(self.under)


class FakeApi:
    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.objects = Objects(self._tell)
        self.asked: list[Asked] = []
        self.accepts: set[str] | None = None
        """Accepted Authorization headers; None accepts all."""
        self.weather: Weather | None = None
        self.lists = Lists.STREAMED
        self.holds_ends = False
        """Streamed lists end only on `end_lists`."""
        self._tls = tls
        self._port = 0
        self._expected: list[_Expected] = []
        self._watchers: set[Watcher] = set()
        self._disordered: set[str] = set()
        """Paths where a watch with reordered events ended: resuming from its last version would skip some."""
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._handling: web.Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._handling = web.Server(self._answer, access_log=None, handler_cancellation=True)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._handling, "127.0.0.1", self._port, ssl=self._tls, backlog=4096, reuse_address=True
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None and self._handling is not None:
            self._server.close()
            self.release()
            for transport in [handler.transport for handler in self._handling.connections]:
                if transport is not None:
                    transport.abort()
            await self._handling.shutdown(0.01)  # 0 means no timeout
            self._server = None
        self._watchers.clear()
        await asyncio.sleep(0)

    def expect(self, fault: Fault, *, method: str = "", under: str = "", times: int = 1) -> None:
        """Apply `fault` to the next requests of this method (or `WATCH`) under this path."""
        self._expected.append(_Expected(fault, method, under, times))

    def release(self) -> None:
        self._released.set()
        self._released = asyncio.Event()

    def count(self, method: str = "", under: str = "") -> int:
        return sum(each.method == (method or each.method) and each.path.startswith(under) for each in self.asked)

    def writes(self) -> Counter[str]:
        return Counter(each.method for each in self.asked if each.method != "GET")

    def bookmark(self) -> None:
        for watcher in self._watchers:
            watcher.lines.put_nowait(bookmark(self.objects.version))

    def end_lists(self) -> None:
        """End every list that is being streamed, as of now."""
        for watcher in self._watchers:
            watcher.tell_end(self.objects.version)

    def end_watches(self) -> None:
        for watcher in self._watchers:
            watcher.lines.put_nowait(None)

    def write_to_watches(self, raw: bytes, *, then_cut: bool = False) -> None:
        """Send these bytes, such as half a line or garbage, and optionally break the connection."""
        for watcher in self._watchers:
            watcher.lines.put_nowait(raw)
            if then_cut:
                watcher.lines.put_nowait(b"")

    def expire_watches(self) -> None:
        """Compact the history, and end every watch with 410 Expired."""
        self.objects.compact()
        gone = No(410, "Expired", "too old resource version")
        self.write_to_watches(line_of("ERROR", gone.body()))
        self.end_watches()

    def _tell(self, change: Change) -> None:
        for watcher in self._watchers:
            if (seen := change.as_seen(watcher.matches)) is not None:
                watcher.tell(line_of(*seen), self.weather)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        query = dict(request.query)
        asked = Asked(request.method, request.path, query, dict(request.headers), await request.read())
        self.asked.append(asked)
        fault = next(self._faults(asked), None)
        if fault is not None:
            return await self._misbehave(request, asked, fault)
        return await self._behave(request, asked)

    def _faults(self, asked: Asked) -> Iterator[Fault]:
        for each in self._expected:
            if each.fits(asked):
                each.times -= 1
                yield each.fault
        if self.weather is not None and (fault := self.weather.fault(asked)) is not None:
            yield fault

    async def _misbehave(self, request: web.BaseRequest, asked: Asked, fault: Fault) -> web.StreamResponse:
        match fault:
            case Refuse(after_success=is_done):
                if is_done:
                    await self._behave(request, asked)
                return _refusal(fault)
            case Say(body):
                return web.Response(body=body)
            case Flood():
                return await self._flood(request)
            case Hang(after_success):
                response = await self._behave(request, asked) if after_success else None
                await self._released.wait()
                return response or await self._behave(request, asked)
            case CutWatch(after_bytes):
                return await self._behave(request, asked, cut_after=after_bytes)
            case Late() | Drop() | CutShort():
                return await self._leave(request, asked, fault)

    async def _leave(self, request: web.BaseRequest, asked: Asked, fault: Late | Drop | CutShort) -> web.StreamResponse:
        match fault:
            case Late(seconds):
                self._later(seconds, asked)
                await self._released.wait()
            case Drop(after_success=True):
                await self._behave(request, asked)
            case Drop():
                pass
            case CutShort():
                await self._half(request, await self._behave(request, asked))
        return await self._cut(request)

    async def _behave(self, request: web.BaseRequest, asked: Asked, *, cut_after: int = -1) -> web.StreamResponse:
        try:
            self._require_accepted(asked)
            if "watch" in asked.query:
                return await self._watch(request, asked, cut_after=cut_after)
            return _json(self._done(asked))
        except No as no:
            return _json(no.body(), status=no.status)

    def _require_accepted(self, asked: Asked) -> None:
        if self.accepts is not None and asked.headers.get("Authorization") not in self.accepts:
            raise No(401, "Unauthorized", "Unauthorized")

    def _later(self, seconds: float, asked: Asked) -> None:
        """Do the request later, independently of the connection, which the client may have closed by then."""

        def do() -> None:
            with contextlib.suppress(No):
                self._done(asked)

        asyncio.get_running_loop().call_later(seconds, do)

    def _done(self, asked: Asked) -> Object:
        body: Object = json.loads(asked.body) if asked.body else {}
        match asked.method:
            case "GET" if asked.path.rpartition("/")[2] in COLLECTIONS:
                return self._page(asked)
            case "GET":
                return self.objects.get(asked.path)
            case "POST":
                return self.objects.create(asked.path, body)
            case "PUT":
                return self.objects.replace(asked.path, body)
            case "PATCH" if "json-patch" not in asked.headers["Content-Type"]:
                is_strategic = "strategic" in asked.headers["Content-Type"]
                return self.objects.patch(asked.path, body, strategic=is_strategic)
            case "DELETE":
                return self.objects.delete(asked.path, body)
            case _:
                raise No(405, "MethodNotAllowed", f"{asked.method} is not done here")

    def _page(self, asked: Asked) -> Object:
        version, begin = self.objects.version, 0
        if onward := asked.query.get("continue"):
            version, begin = map(int, onward.split(":"))
            if version < self.objects.oldest:
                raise No(410, "Expired", "the provided continue parameter is too old")
        found = self.objects.select(asked.path, asked.query)
        end = begin + int(asked.query.get("limit") or len(found))
        meta = {"resourceVersion": str(version)}
        if end < len(found):
            meta["continue"] = f"{version}:{end}"
        return {"kind": "List", "metadata": meta, "items": found[begin:end]}

    async def _watch(self, request: web.BaseRequest, asked: Asked, *, cut_after: int = -1) -> web.StreamResponse:
        watcher = self._watcher(asked)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        self._watchers.add(watcher)
        try:
            await response.prepare(request)
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                async with asyncio.timeout(float(asked.query.get("timeoutSeconds", "3600"))):
                    while (line := await watcher.lines.get()) is not None:
                        if not line:
                            return await self._cut(request)
                        if 0 <= cut_after < len(line):
                            await response.write(line[:cut_after])
                            return await self._cut(request)
                        cut_after -= len(line) if cut_after >= 0 else 0
                        await response.write(line)
        finally:
            self._watchers.discard(watcher)
            if watcher.is_disordered:
                self._disordered.add(asked.path)
        return response

    def _watcher(self, asked: Asked) -> Watcher:
        """A watcher with its first lines queued: the changes since its version, or all objects."""
        watcher, since = Watcher(asked), asked.query.get("resourceVersion")
        if since is None:
            watcher.tell_all(self.objects.select(asked.path, asked.query), self.lists)
            if not self.holds_ends and not self._is_late():
                watcher.tell_end(self.objects.version)
            return watcher
        if asked.path in self._disordered:
            self._disordered.discard(asked.path)
            raise No(410, "Expired", "too old resource version")
        for change in self.objects.since(int(since)):
            if (seen := change.as_seen(watcher.matches)) is not None:
                watcher.lines.put_nowait(line_of(*seen))
        return watcher

    def _is_late(self) -> bool:
        """Whether changes come before the end of a list, as in a storm."""
        if self.weather is None or not self.weather.disturbed(b"")[1]:
            return False
        asyncio.get_running_loop().call_later(LATER_S, self.end_lists)
        return True

    async def _flood(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)

    async def _half(self, request: web.BaseRequest, whole: web.StreamResponse) -> None:
        assert isinstance(whole, web.Response)
        assert isinstance(whole.body, bytes)
        response = web.StreamResponse(headers={"Content-Length": str(len(whole.body))})
        await response.prepare(request)
        await response.write(whole.body[: len(whole.body) // 2])

    async def _cut(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()  # bytes already written are still sent
        return web.StreamResponse()


def _refusal(fault: Refuse) -> web.Response:
    more = {"Retry-After": fault.retry_after} if fault.retry_after else {}
    words = json.dumps(No(fault.status, fault.reason, fault.message).body()).encode()
    text = words if fault.body is None else fault.body
    return web.Response(status=fault.status, body=text, headers={**fault.headers, **more})


def _json(object_: Object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=json.dumps(object_).encode(), content_type="application/json")
