"""The API server as seen by one identity: the verbs, and `Refused` for errors."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

from rig.client.connection import Answer, Connection, Request, Way
from rig.client.resources import Json, Objects, path_of
from rig.control.readiness import trusting
from rig.errors import Refused
from rig.identity.identities import Identities
from rig.identity.people import Bearer, Identity


class Change(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True)
class Event:
    """One change, and the object after it."""

    change: Change
    object: Json


def events(
    connection: http.client.HTTPSConnection, response: http.client.HTTPResponse, within_s: float
) -> Iterator[Event]:
    """The changes, until the time is over or the server ends the watch."""
    deadline = time.monotonic() + within_s
    while (left := deadline - time.monotonic()) > 0:
        # A response that closes the connection has taken over the socket; the server never closes one after a watch.
        if connection.sock is not None:
            connection.sock.settimeout(left)
        try:
            line = response.readline()
        except TimeoutError:
            return
        if not line:
            return
        yield decoded(line)


def decoded(line: bytes) -> Event:
    """Parse one line. A line may also be the error that ends a watch, mostly because its start is too old."""
    document = json.loads(line)
    if document["type"] == "ERROR":
        status = document["object"]
        raise Refused(status["code"], status["reason"], status["message"])
    return Event(Change(document["type"]), document["object"])


Query = Mapping[str, str]
_JSON: Final = "application/json"
_NOTHING: Final[Query] = {}
_WORTH_TELLING: Final = 1000
FIELD_MANAGER: Final = "partage-rig"


class Patch(Enum):
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Api:
    """One identity's connection, for one thread; after `close()` the next request opens another one."""

    def __init__(self, server: str, identities: Identities, identity: Identity) -> None:
        self.user = identity.user
        self._way = way(server, identities, identity)
        self._connection = Connection(self._way)

    def get(self, path: str, query: Query = _NOTHING) -> Json:
        return self._object(Request("GET", _target(path, query)))

    def list(self, path: str, query: Query = _NOTHING) -> Objects:
        return cast("Objects", self.get(path, query)["items"])

    def create(self, path: str, body: Json, query: Query = _NOTHING) -> Json:
        """Create an object and return it; `path` is the collection's."""
        return self._object(_with_body("POST", _target(path, query), body))

    def replace(self, path: str, body: Json) -> Json:
        return self._object(_with_body("PUT", path, body))

    def patch(self, path: str, body: Json | Objects, kind: Patch = Patch.MERGE) -> Json:
        """Change an object. An apply takes over fields from other managers."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"} if kind is Patch.APPLY else _NOTHING
        return self._object(_with_body("PATCH", _target(path, query), body, kind.value))

    def apply(self, manifest: Json) -> None:
        """Create the object, or make it what its manifest says."""
        self.patch(path_of(manifest), manifest, Patch.APPLY)

    def delete(self, path: str, options: Json | None = None) -> Json:
        """Request an object's deletion; `options` are DeleteOptions."""
        return self._object(_with_body("DELETE", path, options or {}))

    def text(self, path: str, query: Query = _NOTHING) -> str:
        return self._asked(Request("GET", _target(path, query))).content.decode(errors="replace")

    @contextmanager
    def watch(self, path: str, *, within_s: float, query: Query = _NOTHING) -> Generator[Iterator[Event]]:
        """Watch a collection until the time is over, on a separate connection."""
        wanted = {"watch": "true", "allowWatchBookmarks": "false", "timeoutSeconds": str(int(within_s) + 1), **query}
        connection = self._way.connect()
        try:
            connection.request("GET", _target(path, wanted), headers=dict(self._way.headers))
            response = connection.getresponse()
            if response.status != HTTPStatus.OK:
                raise refusal(Answer(response.status, response.read()))
            yield events(connection, response, within_s)
        finally:
            connection.close()

    def close(self) -> None:
        self._connection.close()

    def _object(self, request: Request) -> Json:
        return cast("Json", json.loads(self._asked(request).content))

    def _asked(self, request: Request) -> Answer:
        answer = self._connection.ask(request)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise refusal(answer)
        return answer


def way(server: str, identities: Identities, identity: Identity) -> Way:
    """How this identity connects to the API server at that URL."""
    url = urlsplit(server)
    if url.hostname is None or url.port is None:
        raise ValueError(f"{server} names no host and port")
    if isinstance(identity.proof, Bearer):
        headers = {"Authorization": f"Bearer {identity.proof.token}"}
        return Way(url.hostname, url.port, trusting(identities.ca), headers)
    return Way(url.hostname, url.port, trusting(identities.ca, identity.proof))


def refusal(answer: Answer) -> Refused:
    """The server's answer as an error. It is a Status, unless the request never reached a handler."""
    text = answer.content.decode(errors="replace")
    try:
        status: Any = json.loads(text)
    except ValueError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return Refused(answer.status, _phrase(answer.status), text.strip()[:_WORTH_TELLING])
    return Refused(answer.status, str(status.get("reason", "")), str(status.get("message", "")))


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "no reason"


def _target(path: str, query: Query) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _with_body(method: str, target: str, body: Json | Objects, kind: str = _JSON) -> Request:
    return Request(method, target, json.dumps(body).encode(), {"Content-Type": kind, "Accept": _JSON})
