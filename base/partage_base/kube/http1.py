"""HTTP/1.1 as far as calls to an API server need it: requests to bytes, bytes to responses. Pure.

The peer may be any program until the first object is decoded: malformed input is rejected, nothing is guessed, and
every buffer is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from partage_base.kube.errors import HEAD_BYTES

MOST_HEAD_BYTES: Final = 64 << 10
MOST_REFUSAL_BYTES: Final = 64 << 10
JSON: Final = "application/json"
_START: Final = b"HTTP/1."
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\r\n]*)?")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?")
_MOST_LINE_BYTES: Final = 4096
_TARGET: Final = re.compile(r"/[!-~]*")
_VALUE: Final = re.compile(r"[ -~]*")
_SWITCHING, _FIRST_FINAL, _FIRST_REFUSAL = 101, 200, 400
_WITHOUT_BODY: Final = frozenset((204, 304))
_END: Final = b"\r\n"


class NotHttp1(Exception):
    pass


class TooLong(NotHttp1):
    """The response has more bytes than the bound; `head` is the beginning of its body."""

    def __init__(self, most_bytes: int, head: bytes) -> None:
        super().__init__(f"an answer of more than {most_bytes} bytes")
        self.head = head


class TruncatedResponse(Exception):
    """The response ended in the middle, or before it began."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    @property
    def call(self) -> str:
        """The call's name in messages."""
        return f"{self.method} {self.path}"

    @property
    def target(self) -> str:
        """The path with the query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


def said_of_us(host: str, headers: dict[str, str]) -> bytes:
    """The headers that all requests share; raises `ValueError` for a character that is not allowed."""
    lines = [f"{name}: {value}" for name, value in {"Host": host, **headers}.items()]
    if not all(map(_VALUE.fullmatch, lines)):
        raise ValueError("a header has characters that none may have")
    return "".join(f"{line}\r\n" for line in lines).encode()


def written(request: Request, prefix: str, of_us: bytes) -> bytes:
    """The whole request, for a server below the path `prefix`."""
    target = f"{prefix}{request.target}"
    if not _TARGET.fullmatch(target):
        raise ValueError(f"{target!r:.200} can't be asked for")
    start = f"{request.method} {target} HTTP/1.1\r\n".encode()
    accept = f"Accept: {request.accept}\r\n".encode()
    if request.body is None:
        return b"".join((start, of_us, accept, _END))
    length = f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n\r\n".encode()
    return b"".join((start, of_us, accept, length, request.body))


class Answer:
    """Incremental parser of one response."""

    __slots__ = (
        "_buffer",
        "_chunked",
        "_is_over",
        "_left",
        "_most",
        "body",
        "headers",
        "is_kept",
        "is_whole",
        "status",
    )

    def __init__(self, most_bytes: int) -> None:
        self.status = 0
        """0 until the head is complete."""
        self.headers: dict[bytes, bytes] = {}
        """Names in lower case."""
        self.body = bytearray()
        self.is_whole = False
        self.is_kept = False
        """Whether the connection can be reused after this response."""
        self._most = most_bytes
        self._buffer = bytearray()
        self._chunked = False
        self._is_over = False
        """Whether its announced length exceeds the bound."""
        self._left: int | None = None
        """Remaining bytes of the body or chunk; None: body until the connection closes, or no chunk begun."""

    @property
    def has_begun(self) -> bool:
        return bool(self.status or self._buffer)

    def take(self, data: bytes) -> None:
        """Parses more bytes; raises `NotHttp1`."""
        if self.is_whole:
            raise NotHttp1("more than one answer")
        self._buffer += data
        if not self.status and not self._head():
            return
        if self._chunked:
            self._chunks()
        else:
            self._plain()
        self._require_nothing_after()

    def end(self) -> None:
        """The connection ended; raises `TruncatedResponse` if the response is incomplete."""
        if self.is_whole:
            return
        if not self.status or self._chunked or self._left is not None:
            raise TruncatedResponse
        self.is_whole = True

    def _require_nothing_after(self) -> None:
        if self.is_whole and self._buffer:
            raise NotHttp1("more than one answer")

    def _head(self) -> bool:
        while True:
            buffer = self._buffer
            if not _START.startswith(bytes(buffer[: len(_START)])):
                raise NotHttp1("it begins like no answer of HTTP")
            end = buffer.find(b"\r\n\r\n")
            if end < 0 and len(buffer) <= MOST_HEAD_BYTES:
                return False
            if not 0 <= end <= MOST_HEAD_BYTES:
                raise NotHttp1(f"a head of more than {MOST_HEAD_BYTES} bytes")
            first, *lines = bytes(buffer[:end]).split(_END)
            del buffer[: end + 4]
            if self._begins(first, lines):
                return True

    def _begins(self, first: bytes, lines: list[bytes]) -> bool:
        """Whether this is the final head, and not an informational one (1xx)."""
        found = _STATUS.fullmatch(first)
        if found is None:
            raise NotHttp1("its first line is none of HTTP")
        status = int(found[2])
        if status == _SWITCHING:
            raise NotHttp1("it switches to another protocol")
        if status < _FIRST_FINAL:
            return False
        self.status, self.headers = status, _headers(lines)
        said = self.headers.get(b"connection", b"").lower()
        self.is_kept = b"close" not in said if found[1] == b"1" else b"keep-alive" in said
        if status >= _FIRST_REFUSAL:
            self._most = min(self._most, MOST_REFUSAL_BYTES)
        self._framed()
        return True

    def _framed(self) -> None:
        """Determines the length of the body."""
        coding, length = self.headers.get(b"transfer-encoding"), self.headers.get(b"content-length")
        if self.status in _WITHOUT_BODY:
            self._left = 0
        elif coding is not None:
            if coding.lower() != b"chunked" or length is not None:
                raise NotHttp1("its length is not known")
            self._chunked = True
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise NotHttp1("its length is no number")
            self._left = int(length)
            self._is_over = self._left > self._most
        else:
            self.is_kept = False

    def _plain(self) -> None:
        self._moved(self._left)
        self.is_whole = self._left == 0

    def _chunks(self) -> None:
        while not self.is_whole:
            if self._left is None and not self._chunk_begins():
                return
            if self._left:
                self._moved(self._left)
                if self._left:
                    return
            if self._left == 0 and not self._chunk_ends():
                return

    def _chunk_begins(self) -> bool:
        line = self._line()
        if line is None:
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise NotHttp1("a chunk has no length")
        size = int(found[1], 16)
        if size:
            self._left = size
            self._is_over = len(self.body) + size > self._most
            return True
        while (trailer := self._line()) is not None:
            if not trailer:
                self.is_whole = True
                return False
        self._buffer[:0] = b"0\r\n"  # parse it again when all trailers are there
        return False

    def _chunk_ends(self) -> bool:
        if len(self._buffer) < len(_END):
            return False
        if not self._buffer.startswith(_END):
            raise NotHttp1("a chunk is longer than it says")
        del self._buffer[: len(_END)]
        self._left = None
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(_END, 0, _MOST_LINE_BYTES)
        if end < 0:
            if len(self._buffer) >= _MOST_LINE_BYTES:
                raise NotHttp1("a line is too long")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + len(_END)]
        return line

    def _moved(self, most: int | None) -> None:
        """Moves received bytes to the body, as far as they belong to it."""
        taken = len(self._buffer) if most is None else min(most, len(self._buffer))
        self._is_over |= len(self.body) + taken > self._most
        if self._is_over and len(self.body) + taken >= HEAD_BYTES:
            raise self._too_long()
        self.body += self._buffer[:taken]
        del self._buffer[:taken]
        if most is not None:
            self._left = most - taken

    def _too_long(self) -> TooLong:
        """Drops all data but the head: errors may live until garbage is collected."""
        head = bytes(self.body[:HEAD_BYTES] + self._buffer[:HEAD_BYTES])[:HEAD_BYTES]
        self.body.clear()
        self._buffer.clear()
        return TooLong(self._most, head)


def _headers(lines: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise NotHttp1("a header has no name")
        key, value = name.lower(), value.strip(b" \t")
        if key in found and found[key] != value:
            if key == b"content-length":
                raise NotHttp1("it has two lengths")
            value = found[key] + b", " + value
        found[key] = value
    return found
