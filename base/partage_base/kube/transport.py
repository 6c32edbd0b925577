"""HTTP to the API server: plain calls by `connections`, watches and everything through a proxy by aiohttp.

A call is sent exactly once, and its response is bounded. Redirects are refused and cookies dropped; the environment is
ignored (its proxies are already in the credentials). Errors become those of `errors` in one place for each of the two
clients, which also decides whether the call may have been carried out. Calls have a client of their own because a
scheduler makes a thousand in a second, and a general client takes most of that second.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import yarl

from partage_base.kube.access import Access
from partage_base.kube.answers import refusal
from partage_base.kube.connections import CONNECT_WITHIN_S, Connections, NotConnected, Place, Sockets
from partage_base.kube.credentials import Credentials
from partage_base.kube.errors import HEAD_BYTES, BadAccess, MalformedResponse, TooLarge, Unreachable
from partage_base.kube.http1 import (
    MOST_REFUSAL_BYTES,
    Answer,
    NotHttp1,
    Request,
    TooLong,
    TruncatedResponse,
    said_of_us,
    written,
)

_REDIRECTS: Final = range(300, 400)
_REFUSALS: Final = range(400, 1000)
_FIRST_NO: Final = 300
_UNAUTHORIZED: Final = 401
_CLOSED: Final = "this client is closed"
_PORTS: Final = {"http": 80, "https": 443}


class _Server(NamedTuple):
    """The API server's address and our request headers for the present credentials."""

    credentials: Credentials
    place: Place
    prefix: str
    """Path prefix of all requests."""
    of_us: bytes


class Transport:
    """Connections to the API server: a pool for calls, and one for each watch."""

    def __init__(self, access: Access, *, user_agent: str, connections: int, most_answer_bytes: int) -> None:
        self._access = access
        self._user_agent = user_agent
        self._connections = connections
        self._most_answer_bytes = most_answer_bytes
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._sockets = Sockets()
        self._calls = Connections(connections, self._sockets)
        self._server: _Server | None = None
        self._is_closed = False

    async def close(self) -> None:
        """Closes every connection without waiting for TLS shutdown."""
        self._is_closed = True
        self._calls.end()
        for session in self._sessions.values():
            if (connector := session.connector) is not None:
                await connector.close(abort_ssl=True)
            await session.close()
        await self._sockets.end()

    async def answer(self, request: Request, *, deadline_s: float) -> bytes:
        """The body of a successful response."""
        with _within(request.call, deadline_s):
            async with asyncio.timeout(deadline_s):
                credentials = await self._access.current()
                if credentials.proxy is None:
                    return await self._called(request, credentials)
                async with self._asked(request, lasts=False) as response:
                    return await self._body(request.call, response, self._most_answer_bytes)

    async def _called(self, request: Request, credentials: Credentials) -> bytes:
        """Calls without a proxy, by our own client."""
        call = request.call
        if self._is_closed:
            raise Unreachable(call, _CLOSED, may_be_done=False)
        answer = Answer(self._most_answer_bytes)
        with _told(call, answer):
            server = self._of(credentials)
            await self._calls.ask(server.place, written(request, server.prefix, server.of_us), answer)
        if answer.status >= _FIRST_NO:
            if answer.status == _UNAUTHORIZED:
                self._access.refused(credentials)
            location = answer.headers.get(b"location", b"")
            if answer.status in _REDIRECTS:
                raise MalformedResponse(
                    call, f"{answer.status} to {location.decode(errors='replace')}, and we follow none"
                )
            retry_after = answer.headers.get(b"retry-after")
            raise refusal(
                call,
                answer.status,
                bytes(answer.body),
                retry_after=retry_after.decode("latin-1") if retry_after else None,
            )
        return bytes(answer.body)

    def _of(self, credentials: Credentials) -> _Server:
        """The server for `credentials`; raises `ValueError` if they can't be right."""
        if self._server is None or self._server.credentials is not credentials:
            self._server = _server(credentials, self._user_agent)
        return self._server

    async def pieces(self, request: Request, *, deadline_s: float, lasts_s: float) -> AsyncGenerator[bytes]:
        """A streamed response, as it arrives; `deadline_s` is for its beginning, `lasts_s` for all of it."""
        async with AsyncExitStack() as stack:
            with _within(request.call, deadline_s):
                async with asyncio.timeout(deadline_s):
                    response = await stack.enter_async_context(self._asked(request, lasts=True))
            ends_at = asyncio.get_running_loop().time() + lasts_s
            while piece := await self._piece(request.call, response, ends_at, lasts_s):
                yield piece

    async def _piece(self, call: str, response: aiohttp.ClientResponse, ends_at: float, lasts_s: float) -> bytes:
        """Reads one piece. No deadline may run while another task does: it would cancel what that task awaits."""
        if self._is_closed:  # while another task ran
            raise Unreachable(call, _CLOSED, may_be_done=True)
        with _within(call, lasts_s), _translated(call):
            async with asyncio.timeout_at(ends_at):
                return await response.content.readany()

    @asynccontextmanager
    async def _asked(self, request: Request, *, lasts: bool) -> AsyncGenerator[aiohttp.ClientResponse]:
        credentials = await self._access.current()
        headers = {"Accept": request.accept, "Accept-Encoding": "identity"}
        if credentials.authorization is not None:
            headers["Authorization"] = credentials.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        with _translated(request.call):
            response = await self._session(request.call, lasts=lasts).request(
                request.method,
                yarl.URL(f"{credentials.url}{request.target}", encoded=True),
                data=request.body,
                headers=headers,
                ssl=credentials.tls or True,
                server_hostname=credentials.server_name,
                proxy=credentials.proxy,
                allow_redirects=False,
            )
        async with response:
            if response.status == _UNAUTHORIZED:
                self._access.refused(credentials)
            await self._require_yes(request.call, response)
            yield response

    async def _require_yes(self, call: str, response: aiohttp.ClientResponse) -> None:
        if response.status in _REDIRECTS:
            raise MalformedResponse(
                call, f"{response.status} to {response.headers.get('Location')}, and we follow none"
            )
        if response.status in _REFUSALS:
            body = await self._body(call, response, MOST_REFUSAL_BYTES)
            raise refusal(call, response.status, body, retry_after=response.headers.get("Retry-After"))

    async def _body(self, call: str, response: aiohttp.ClientResponse, most: int) -> bytes:
        """The whole body; raises `TooLarge` as soon as it exceeds `most`."""
        body = bytearray()
        with _translated(call):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > most:
                    head = bytes(body[:HEAD_BYTES])
                    body.clear()  # the error may live until garbage is collected
                    raise TooLarge(call, f"an answer of more than {most} bytes", head)
        return bytes(body)

    def _session(self, call: str, *, lasts: bool) -> aiohttp.ClientSession:
        if self._is_closed:
            raise Unreachable(call, _CLOSED, may_be_done=False)
        if lasts not in self._sessions:
            self._sessions[lasts] = self._new_session(0 if lasts else self._connections)
        return self._sessions[lasts]

    def _new_session(self, most_connections: int) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=most_connections, socket_factory=self._sockets.make),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_WITHIN_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._user_agent},
            auto_decompress=False,
        )
        # It would resend a PUT after a connection broke; there is no public way to disable that, only the one that its
        # own test client uses.
        session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return session


def _server(credentials: Credentials, user_agent: str) -> _Server:
    url = urlsplit(credentials.url)
    if url.scheme not in _PORTS or not url.hostname or url.username is not None:
        raise ValueError(f"{credentials.url!r:.200} is no address of a server")
    is_default = url.port in (None, _PORTS[url.scheme])
    name = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    place = Place(
        host=url.hostname,
        port=url.port or _PORTS[url.scheme],
        tls=(credentials.tls or _usual_tls()) if url.scheme == "https" else None,
        server_name=credentials.server_name,
    )
    headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
    if credentials.authorization is not None:
        headers["Authorization"] = credentials.authorization
    of_us = said_of_us(name if is_default else f"{name}:{url.port}", headers)
    return _Server(credentials, place, url.path.rstrip("/"), of_us)


@cache
def _usual_tls() -> ssl.SSLContext:
    """Trusts the CAs of the system."""
    return ssl.create_default_context()


@contextmanager
def _within(call: str, deadline_s: float) -> Generator[None]:
    try:
        yield
    except TimeoutError:
        raise Unreachable(call, f"no whole answer within {deadline_s:g} s", may_be_done=True) from None


@contextmanager
def _told(call: str, answer: Answer) -> Generator[None]:
    """Translates errors of our own client into `errors`."""
    try:
        yield
    except NotConnected as failure:
        raise _not_connected(call, failure) from failure
    except TooLong as error:
        raise TooLarge(call, str(error), error.head) from None
    except NotHttp1 as error:
        raise MalformedResponse(call, str(error)) from None
    except TruncatedResponse:
        why = "the answer was cut short" if answer.has_begun else "the connection was closed before there was an answer"
        raise Unreachable(call, why, may_be_done=True) from None
    except ValueError as error:
        raise BadAccess(f"{call}: the API server's address can't be right: {error}; correct the kubeconfig") from None
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        raise Unreachable(call, _why(error), may_be_done=True) from error


def _not_connected(call: str, failure: NotConnected) -> Unreachable:
    error = failure.error
    if error is None:
        return Unreachable(call, f"no connection within {CONNECT_WITHIN_S:g} s", may_be_done=False)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _not_trusted(call, failure.where, error)
    return Unreachable(call, f"no connection to {failure.where}: {_why(error)}", may_be_done=False)


def _not_trusted(call: str, where: str, error: BaseException) -> Unreachable:
    why = f"the certificate of {where} does not hold: {_why(error)}"
    return Unreachable(call, why, may_be_done=False, advice="does the kubeconfig name its authority?")


@contextmanager
def _translated(call: str) -> Generator[None]:
    """Translates errors of aiohttp into `errors`; the most specific first."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError:
        raise Unreachable(call, f"no connection within {CONNECT_WITHIN_S:g} s", may_be_done=False) from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise _not_trusted(call, f"{error.host}:{error.port}", error.certificate_error) from error
    except aiohttp.ClientConnectorError as error:
        why = f"no connection to {error.host}:{error.port}: {_why(error.os_error)}"
        raise Unreachable(call, why, may_be_done=False) from error
    except aiohttp.ClientHttpProxyError as error:
        why = f"the proxy answered {error.status} {error.message}"
        raise Unreachable(call, why, may_be_done=False, advice="does the proxy let us through?") from error
    except aiohttp.InvalidURL as error:
        raise BadAccess(f"{call}: the API server's address can't be right: {error}; correct the kubeconfig") from error
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError) as error:
        broken = isinstance(error, aiohttp.ClientPayloadError)
        raise (
            Unreachable(call, "the answer was cut short", may_be_done=True)
            if broken
            else MalformedResponse(call, _why(error))
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
            raise
        raise Unreachable(call, _why(error), may_be_done=True) from error


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and (error.errno or 0) > 0:
        return os.strerror(error.errno or 0)
    return " ".join(str(error).split()) or type(error).__name__
