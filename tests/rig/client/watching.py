"""A watch: one JSON document a line, for as long as the caller wants to see them."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from rig.errors import Refused
from rig.client.resources import Json


class Change(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True)
class Event:
    """One change, and the object as it is since."""

    change: Change
    object: Json


def events(
    connection: http.client.HTTPSConnection, response: http.client.HTTPResponse, within_s: float
) -> Iterator[Event]:
    """The changes, until the time is over or the server ends the watch."""
    deadline = time.monotonic() + within_s
    while (left := deadline - time.monotonic()) > 0:
        # A response that ends the connection has taken the socket over; the server never ends one after a watch.
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
    """One line; the server says in a line, too, that it has no more, most often because the start is too old."""
    document = json.loads(line)
    if document["type"] == "ERROR":
        status = document["object"]
        raise Refused(status["code"], status["reason"], status["message"])
    return Event(Change(document["type"]), document["object"])
