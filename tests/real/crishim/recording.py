"""What was said on recorded connections, as calls: method, request and answer, byte for byte. Pure.

Of HTTP/2 only as much as is needed to take messages out of it; what is not whole at the end of a record is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import hpack

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _CONTINUATION = 0, 1, 9
_END_STREAM, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x4, 0x8, 0x20


@dataclass(frozen=True, order=True)
class Said:
    """One call that has ended."""

    method: str
    request: bytes
    answer: bytes


@dataclass(frozen=True)
class _Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def content(self) -> bytes:
        """Without padding and priority."""
        content = self.payload
        if self.flags & _PADDED:
            content = content[1 : len(content) - content[0]]
        return content[5:] if self.kind == _HEADERS and self.flags & _PRIORITY else content


def calls(asked: bytes, answered: bytes) -> list[Said]:
    """All calls of one connection that were answered."""
    methods, requests = _methods(asked), _messages(asked.removeprefix(_PREFACE))
    answers = _messages(answered)
    return [
        Said(method, requests.get(stream, b""), answers[stream])
        for stream, method in methods.items()
        if stream in answers
    ]


def _frames(record: bytes) -> Iterator[_Frame]:
    at = 0
    while at + 9 <= len(record):
        length = int.from_bytes(record[at : at + 3], "big")
        kind, flags, stream = record[at + 3], record[at + 4], int.from_bytes(record[at + 5 : at + 9], "big")
        payload = record[at + 9 : at + 9 + length]
        if len(payload) < length:
            return
        yield _Frame(kind, flags, stream, payload)
        at += 9 + length


def _messages(record: bytes) -> dict[int, bytes]:
    """What each stream carried, with gRPC's own five bytes before each message."""
    found: dict[int, bytes] = {}
    for frame in _frames(record):
        if frame.kind == _DATA:
            found[frame.stream] = found.get(frame.stream, b"") + frame.content
    return found


def _path(headers: Iterable[tuple[bytes | str, bytes | str]]) -> str:
    found = {str(name): str(value) for name, value in headers}
    return found[":path"]


def _methods(asked: bytes) -> dict[int, str]:
    decoder, block, found = hpack.Decoder(), b"", dict[int, str]()
    for frame in _frames(asked.removeprefix(_PREFACE)):
        if frame.kind not in (_HEADERS, _CONTINUATION):
            continue
        block = frame.content if frame.kind == _HEADERS else block + frame.content
        if frame.flags & _END_HEADERS:
            found[frame.stream] = _path(decoder.decode(block)).rpartition("/")[2]
    return found
