"""What was said on recorded connections, as calls: method, request and answer, byte for byte. Pure.

What is not whole at the end of a record is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import hpack

from support.splice import wire
from support.splice.wire import Frame, Reader


@dataclass(frozen=True, order=True)
class Said:
    """One call that has ended."""

    method: str
    request: bytes
    answer: bytes


def calls(asked: bytes, answered: bytes) -> list[Said]:
    """All calls of one connection that were answered."""
    to_runtime = Reader().take(asked.removeprefix(wire.PREFACE))
    requests, answers = _messages(to_runtime), _messages(Reader().take(answered))
    return [
        Said(method, requests.get(stream, b""), answers[stream])
        for stream, method in _methods(to_runtime).items()
        if stream in answers
    ]


def _messages(frames: list[Frame]) -> dict[int, bytes]:
    """What each stream carried, with gRPC's own five bytes before each message."""
    found: dict[int, bytes] = {}
    for frame in frames:
        if frame.kind == wire.DATA:
            found[frame.stream] = found.get(frame.stream, b"") + frame.content
    return found


def _methods(frames: list[Frame]) -> dict[int, str]:
    decoder, block, found = hpack.Decoder(), b"", dict[int, str]()
    for frame in frames:
        if frame.kind not in (wire.HEADERS, wire.CONTINUATION):
            continue
        block = frame.content if frame.kind == wire.HEADERS else block + frame.payload
        if frame.flags & wire.END_HEADERS:
            found[frame.stream] = dict(wire.fields_of(decoder, block))[":path"].rpartition("/")[2]
    return found
