"""Answers browsers: sign-in and sign-out, pages, and streams of their changes.

Pages are rendered here and nothing is written anywhere. A viewer sees what the door allows, which is checked again
every minute. No answer may be framed or cached, or run a script that is not one of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qs, urlsplit

import structlog
from aiohttp import web

from partage_base.kube import KubeError
from partage_ui.board import Board
from partage_ui.document import document, login
from partage_ui.html import Html
from partage_ui.reviews import Busy, Door, expiry_of
from partage_ui.viewers import Viewer, Viewers
from partage_ui.views.catalogue import FIRST, VIEWS, fragment
from partage_ui.views.parts import Query, read_query

MOST_BODY_BYTES: Final = 32 << 10
BODY_WITHIN_S: Final = 5.0
WRITE_WITHIN_S: Final = 10.0
"""A client that reads a stream more slowly has to reconnect."""
QUIET_S: Final = 15.0
SHARE: Final = 3
"""Bounds the processor time of streams: after rendering, waits for this multiple of the time it took."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Server": "partage-ui",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
NEVER_KEPT: Final = {"Cache-Control": "no-store"}
_STATIC: Final = {
    name: ((files("partage_ui") / "static" / name).read_bytes(), kind)
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript"))
}
_ASSETS: Final = hashlib.sha256(b"".join(body for body, _ in _STATIC.values())).hexdigest()[:12]
_log = structlog.get_logger()


class Site:
    def __init__(
        self, board: Board, door: Door, *, secure: bool, session_s: float, know: Callable[[web.BaseRequest], bool]
    ) -> None:
        """`secure`: browsers reach it by TLS. `know` registers the connection of a viewer."""
        self.viewers = Viewers(clock=time.monotonic)
        self.logins: dict[str, int] = {}
        """Number of sign-ins by outcome."""
        self.port = 0
        self.board, self._door, self._session_s, self._know = board, door, session_s, know
        self._secure, self._cookie = secure, "__Host-partage" if secure else "partage"
        self._turn = asyncio.Lock()
        self._is_stopping = False

    def stop(self) -> None:
        """Ends all streams at their next update."""
        self._is_stopping = True
        self.board.put(self.board.facts)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Exception:  # noqa: BLE001  (a defect costs this answer alone)
            _log.exception("a page could not be made", path=request.path)
            return _plain(500, "the page could not be made; see the log of partage-ui\n")

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "GET", path if path.startswith("/static/"):
                return _static(path.removeprefix("/static/"))
            case "GET", "/login":
                return await self._login(request)
            case "GET", path:
                return await self._show(request, path.strip("/"))
            case "POST", "/login" | "/logout" as path:
                return await self._take(request, path)
            case _:
                return _plain(405, "only GET is answered, and POST of the forms\n")

    async def _take(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """Handles a submitted form."""
        if not _is_from_here(request):
            return _plain(403, "this form is of another site\n")
        if path == "/login":
            return await self._enter(await _token_in(request))
        self.viewers.leave(request.cookies.get(self._cookie, ""))
        return self._to("/login")

    async def _login(self, request: web.BaseRequest) -> web.StreamResponse:
        token = request.query.get("token", "") if not self.board.facts.is_cluster else ""
        return await self._enter(token) if token else self._form()

    async def _enter(self, token: str | None) -> web.StreamResponse:
        if not token:
            return self._form("That is no token.", status=400)
        try:
            person = await self._door.enter(token)
        except Busy:
            return self._refuse("busy", "Too many sign in at once; try again in a moment.", status=503)
        except KubeError as error:
            return self._refuse("failed", f"The token could not be checked: {error}", status=502)
        if person is None:
            return self._refuse("refused", "This token is nobody's, or its time is over.", status=401)
        ends = expiry_of(token)
        lasts_s = self._session_s if ends is None else max(0.0, min(self._session_s, ends - time.time()))
        key = self.viewers.enter(person, lasts_s=lasts_s)
        if key is None:
            return self._refuse("full", "Too many are looking already; try again later.", status=503)
        self._count("done")
        _log.info("signed in", user=person.username, lasts_s=round(lasts_s))
        answer = self._to(f"/{FIRST}")
        answer.set_cookie(
            self._cookie, key, httponly=True, samesite="Strict", secure=self._secure, path="/", max_age=int(lasts_s)
        )
        return answer

    def _refuse(self, outcome: str, why: str, *, status: int) -> web.StreamResponse:
        self._count(outcome)
        return self._form(why, status=status)

    def _count(self, outcome: str) -> None:
        self.logins[outcome] = self.logins.get(outcome, 0) + 1

    def _form(self, why: str = "", *, status: int = 200) -> web.Response:
        return _page(login(why=why, is_cluster=self.board.facts.is_cluster, assets=_ASSETS), status=status)

    async def _show(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        viewer = self.viewers.of(request.cookies.get(self._cookie, ""))
        if viewer is None:
            return _plain(401, "sign in again\n") if path.startswith("live/") else self._to("/login")
        if not self._know(request):
            return _plain(503, "too many connections; try again later\n")
        name = path.removeprefix("live/")
        if not path:
            return self._to(f"/{FIRST}")
        if name not in VIEWS:
            return _plain(404, f"there are {', '.join(f'/{each}' for each in VIEWS)}\n")
        query = read_query(request.query)
        if name != path:
            return await self._live(request, viewer, name, query)
        body, names = await self._body(viewer, name, query)
        return _page(document(name, body, query, user=viewer.person.username, names=names, assets=_ASSETS))

    async def _body(self, viewer: Viewer, name: str, query: Query) -> tuple[Html, list[str]]:
        facts = self.board.look()
        scope = await self._door.scope(viewer, facts, query.namespace)
        began = time.thread_time()
        body = fragment(VIEWS[name], facts, scope, query)
        self.board.spend(time.thread_time() - began)
        return body, [each for each in facts.namespaces if scope.sees(each)]

    async def _live(self, request: web.BaseRequest, viewer: Viewer, name: str, query: Query) -> web.StreamResponse:
        if not self.viewers.begin_stream(viewer):
            return _plain(503, "too many pages are followed already; close some\n", {"Retry-After": "30"})
        response = web.StreamResponse(headers={**HEADERS, **NEVER_KEPT, "Content-Type": "text/event-stream"})
        try:
            await response.prepare(request)
            with contextlib.suppress(TimeoutError, ConnectionError):
                await self._follow(response, viewer, name, query)
        finally:
            self.viewers.end_stream(viewer)
        return response

    async def _follow(self, response: web.StreamResponse, viewer: Viewer, name: str, query: Query) -> None:
        sent = Html("")
        while self.viewers.is_in(viewer) and not self._is_stopping:
            version = self.board.version
            async with self._paced():
                body, _ = await self._body(viewer, name, query)
            await _write(response, _event("view", body) if body != sent else b": nothing new\n\n")
            sent = body
            await self.board.newer(version, within_s=QUIET_S)
        await _write(response, _event("end", ""))

    @asynccontextmanager
    async def _paced(self) -> AsyncGenerator[None]:
        """One stream at a time, and a pause after each."""
        async with self._turn:
            began = time.thread_time()
            yield
            await asyncio.sleep(min(1.0, SHARE * (time.thread_time() - began)))

    def _to(self, path: str) -> web.Response:
        return web.Response(status=303, headers={**HEADERS, **NEVER_KEPT, "Location": path})


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_WITHIN_S):
        await response.write(data)


def _event(name: str, body: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in body.split("\n"))
    return f"event: {name}\n{lines}\n".encode()


def _page(body: Html, *, status: int = 200) -> web.Response:
    return web.Response(
        status=status, body=body.encode(), content_type="text/html", charset="utf-8", headers={**HEADERS, **NEVER_KEPT}
    )


def _plain(status: int, words: str, more: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=words, headers={**HEADERS, **NEVER_KEPT, **(more or {})})


def _static(name: str) -> web.Response:
    if name not in _STATIC:
        return _plain(404, "there is no such file\n")
    body, kind = _STATIC[name]
    headers = {**HEADERS, "Cache-Control": "max-age=86400"}
    return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)


def _is_from_here(request: web.BaseRequest) -> bool:
    """Whether a form was sent by a page of ours, according to the browser."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("Host", "")


async def _token_in(request: web.BaseRequest) -> str | None:
    """The token in the form; None if the body is no form, too long or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for piece in request.content.iter_any():
                body += piece
                if len(body) > MOST_BODY_BYTES:
                    return None
        found = parse_qs(body.decode(), max_num_fields=4).get("token", [""])
    except (TimeoutError, ValueError):
        return None
    return found[0].strip()
