"""One keep-alive connection to the API server, reopened after the server closed it.

A request that changes something is sent once. Without an answer its caller can't know whether it took effect, and the
error says so. A GET is retried on a new connection. Connections are always direct: `http.client` ignores proxy
variables.
"""

from __future__ import annotations

import http.client
import select
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rig.errors import ComponentFailed

_ANSWERS_WITHIN_S: Final = 70.0
"""The API server itself times out after 60."""


@dataclass(frozen=True)
class Request:
    """A request; `target` is a path with its query."""

    method: str
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes


@dataclass(frozen=True)
class Way:
    """How to connect to a server: address, TLS, and the caller's headers."""

    host: str
    port: int
    context: ssl.SSLContext
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def connect(self, within_s: float = _ANSWERS_WITHIN_S) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=within_s, context=self.context)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise ComponentFailed(f"cannot reach https://{self.host}:{self.port}: {error}; is it running?") from error
        return connection


class Connection:
    """For one thread. `close()` closes it, the next request reopens it."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._open: http.client.HTTPSConnection | None = None

    def ask(self, request: Request) -> Answer:
        kept = self._kept()
        connection = self._open = kept or self._way.connect()
        try:
            return self._exchange(connection, request)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if kept is not None and request.method == "GET":
                return self.ask(request)
            raise self._cut_off(request, error) from error

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _kept(self) -> http.client.HTTPSConnection | None:
        """The open connection, unless the server has closed it: only that makes an idle one readable."""
        if self._open is None or self._open.sock is None:
            return None
        if select.select([self._open.sock], [], [], 0)[0]:
            self.close()
        return self._open

    def _exchange(self, connection: http.client.HTTPSConnection, request: Request) -> Answer:
        headers = {**self._way.headers, **request.headers}
        connection.request(request.method, request.target, body=request.body, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.read())

    def _cut_off(self, request: Request, error: Exception) -> ComponentFailed:
        unknown = "" if request.method == "GET" else "; it may or may not have been carried out"
        return ComponentFailed(f"{request.method} {request.target} got no answer: {error!r}{unknown}")
