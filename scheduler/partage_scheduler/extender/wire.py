"""The part of HTTP/1.1 that kube-scheduler uses with an extender: POSTs with a length, one after the other. Pure.

Bytes go in, requests come out; any other input raises `Unfit`, after which nothing more is read. It is parsed here
because a library costs more than the rest of an answer, at three requests for each pod.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from partage_scheduler.errors import SchedulerError

MOST_HEAD_BYTES: Final = 16 << 10
MOST_BODY_BYTES: Final = 16 << 20
"""Enough for the largest pod with the names of all nodes of the largest cluster."""
_END: Final = b"\r\n\r\n"
_FIRST_LINE: Final = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,1023}) HTTP/1\.1")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_LENGTH: Final = re.compile(rb"[0-9]{1,10}")
_REASONS: Final = {
    200: b"OK",
    400: b"Bad Request",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    411: b"Length Required",
    413: b"Content Too Large",
    417: b"Expectation Failed",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}


class Unfit(SchedulerError):
    """The input is not such a request; `status` is the HTTP status to answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Ask(NamedTuple):
    path: str
    body: bytes
    is_last: bool
    """Whether the caller wants the connection closed after the answer."""


class _Head(NamedTuple):
    path: str
    length: int
    is_last: bool


class Listener:
    def __init__(self) -> None:
        self._said = bytearray()
        self._searched = 0
        self._head: _Head | None = None

    @property
    def is_between(self) -> bool:
        return not self._said and self._head is None

    @property
    def waiting(self) -> int:
        return len(self._said)

    def hear(self, data: bytes) -> None:
        self._said += data

    def next(self) -> Ask | None:
        """None until a request is complete; raises `Unfit`."""
        if self._head is None:
            self._head = self._read_head()
        head = self._head
        if head is None or len(self._said) < head.length:
            return None
        body = bytes(self._said[: head.length])
        del self._said[: head.length]
        self._head = None
        return Ask(head.path, body, head.is_last)

    def _read_head(self) -> _Head | None:
        end = self._said.find(_END, self._searched)
        if end > MOST_HEAD_BYTES or (end < 0 and len(self._said) > MOST_HEAD_BYTES):
            raise Unfit(431, f"the head of a request has {MOST_HEAD_BYTES} bytes at most")
        if end < 0:
            self._searched = max(0, len(self._said) - len(_END) + 1)
            return None
        head = bytes(self._said[:end])
        del self._said[: end + len(_END)]
        self._searched = 0
        return _head_of(head)


@lru_cache(maxsize=256)
def _head_of(head: bytes) -> _Head:
    """Cached, since one caller's heads differ only in the length."""
    lines = head.split(b"\r\n")
    first = _FIRST_LINE.fullmatch(lines[0])
    if first is None:
        raise Unfit(400, "only HTTP/1.1 is spoken here")
    if first[1] != b"POST":
        raise Unfit(405, "only POST is answered")
    fields = _fields_of(lines[1:])
    is_last = fields.get(b"connection", b"").lower() == b"close"
    return _Head(first[2].decode("ascii"), _length_of(fields), is_last)


def _fields_of(lines: list[bytes]) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise Unfit(400, "a line of the head is no field")
        name = field[1].lower()
        if name in fields and name in {b"content-length", b"transfer-encoding", b"host"}:
            raise Unfit(400, f"{name.decode()} is said twice")
        fields[name] = field[2]
    return fields


def _length_of(fields: dict[bytes, bytes]) -> int:
    if b"transfer-encoding" in fields:
        raise Unfit(411, "say a Content-Length: bodies in chunks are not read")
    if b"expect" in fields:
        raise Unfit(417, "send the body at once")
    length = fields.get(b"content-length")
    if length is None:
        raise Unfit(411, "say a Content-Length")
    if _LENGTH.fullmatch(length) is None:
        raise Unfit(400, "the Content-Length is no number of bytes")
    if int(length) > MOST_BODY_BYTES:
        raise Unfit(413, f"a body has {MOST_BODY_BYTES} bytes at most")
    return int(length)


def answer(body: bytes, *, is_last: bool = False) -> bytes:
    return _sent(200, body, b"application/json", is_last=is_last)


def refusal(unfit: Unfit) -> bytes:
    return _sent(unfit.status, f"{unfit}\n".encode(), b"text/plain; charset=utf-8", is_last=True)


def _sent(status: int, body: bytes, content_type: bytes, *, is_last: bool) -> bytes:
    head = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n"
    closing = b"Connection: close\r\n" if is_last else b""
    return head % (status, _REASONS[status], content_type, len(body), closing) + body
