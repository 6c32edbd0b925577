"""HTTP to the API server, by aiohttp: the only module that imports it.

A call is sent once, whatever becomes of it, and its answer is bounded. Redirects are refused and cookies forgotten; the
environment has no say here (what it says of proxies is in the credentials). Whatever goes wrong becomes one of
`errors` in one place, which also decides whether the call may have been carried out.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import aiohttp
import yarl

from partage_base.kube.access import Access
from partage_base.kube.answers import refusal
from partage_base.kube.errors import BadAccess, Nonsense, Unreachable
from partage_base.kube.sockets import Sockets

CONNECT_WITHIN_S: Final = 5.0
_MOST_REFUSAL_BYTES: Final = 64 << 10
_REDIRECTS: Final = range(300, 400)
_REFUSALS: Final = range(400, 1000)
_UNAUTHORIZED: Final = 401


@dataclass(frozen=True)
class Request:
    """What is asked."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def call(self) -> str:
        """What it is called in messages."""
        return f"{self.method} {self.path}"


class Transport:
    """Connections to the API server: some are kept for calls, and each watch has its own."""

    def __init__(self, access: Access, *, user_agent: str, connections: int, most_answer_bytes: int) -> None:
        self._access = access
        self._user_agent = user_agent
        self._connections = connections
        self._most_answer_bytes = most_answer_bytes
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._sockets = Sockets()
        self._is_closed = False

    async def close(self) -> None:
        """Ends every connection, without long goodbyes."""
        self._is_closed = True
        for session in self._sessions.values():
            if (connector := session.connector) is not None:
                await connector.close(abort_ssl=True)
            await session.close()
        await self._sockets.end()

    async def answer(self, request: Request, *, deadline_s: float) -> bytes:
        """The body of an answer that says yes."""
        with _within(request.call, deadline_s):
            async with asyncio.timeout(deadline_s), self._asked(request, lasts=False) as response:
                return await self._body(request.call, response, self._most_answer_bytes)

    async def pieces(self, request: Request, *, deadline_s: float, lasts_s: float) -> AsyncGenerator[bytes]:
        """An answer that goes on, as it arrives; `deadline_s` is for its beginning, `lasts_s` for all of it."""
        async with AsyncExitStack() as stack:
            with _within(request.call, deadline_s):
                async with asyncio.timeout(deadline_s):
                    response = await stack.enter_async_context(self._asked(request, lasts=True))
            ends_at = asyncio.get_running_loop().time() + lasts_s
            while piece := await self._piece(request.call, response, ends_at, lasts_s):
                yield piece

    async def _piece(self, call: str, response: aiohttp.ClientResponse, ends_at: float, lasts_s: float) -> bytes:
        """No deadline may run while somebody else has the turn: it would cancel what they wait for."""
        with _within(call, lasts_s), _translated(call):
            async with asyncio.timeout_at(ends_at):
                return await response.content.readany()

    @asynccontextmanager
    async def _asked(self, request: Request, *, lasts: bool) -> AsyncGenerator[aiohttp.ClientResponse]:
        credentials = await self._access.current()
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if credentials.authorization is not None:
            headers["Authorization"] = credentials.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        query = f"?{urlencode(request.query)}" if request.query else ""
        with _translated(request.call):
            response = await self._session(request.call, lasts=lasts).request(
                request.method,
                yarl.URL(f"{credentials.url}{request.path}{query}", encoded=True),
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
            raise Nonsense(call, f"{response.status} to {response.headers.get('Location')}, and we follow none")
        if response.status in _REFUSALS:
            body = await self._body(call, response, _MOST_REFUSAL_BYTES)
            raise refusal(call, response.status, body, retry_after=response.headers.get("Retry-After"))

    async def _body(self, call: str, response: aiohttp.ClientResponse, most: int) -> bytes:
        """All of it; raises `Nonsense` as soon as it is too much."""
        body = bytearray()
        with _translated(call):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > most:
                    raise Nonsense(call, f"an answer of more than {most} bytes")
        return bytes(body)

    def _session(self, call: str, *, lasts: bool) -> aiohttp.ClientSession:
        if self._is_closed:
            raise Unreachable(call, "this client is closed", may_be_done=False)
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
        # It would send a PUT a second time after a connection broke; there is no public way to say no, only the one
        # that its own test client uses.
        session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return session


@contextmanager
def _within(call: str, deadline_s: float) -> Generator[None]:
    try:
        yield
    except TimeoutError:
        raise Unreachable(call, f"no whole answer within {deadline_s:g} s", may_be_done=True) from None


@contextmanager
def _translated(call: str) -> Generator[None]:
    """Errors of aiohttp as ours; the most specific first."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError:
        raise Unreachable(call, f"no connection within {CONNECT_WITHIN_S:g} s", may_be_done=False) from None
    except aiohttp.ClientConnectorCertificateError as error:
        why = f"the certificate of {error.host}:{error.port} does not hold: {_why(error.certificate_error)}"
        raise Unreachable(call, why, may_be_done=False, advice="does the kubeconfig name its authority?") from error
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
            Unreachable(call, "the answer was cut short", may_be_done=True) if broken else Nonsense(call, _why(error))
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
            raise
        raise Unreachable(call, _why(error), may_be_done=True) from error


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and (error.errno or 0) > 0:
        return os.strerror(error.errno or 0)
    return " ".join(str(error).split()) or type(error).__name__
