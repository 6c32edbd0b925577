"""Lines of a container's log, as the runtime writes them: `2026-01-02T03:04:05.678Z stdout F text`. Pure.

`P` instead of `F` says that the line goes on: runtimes cut long ones. What is no such line, as one that a full disk cut
off, is passed on as it stands, without a time; nothing that a container said is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from partage_cli.machine.wire.messages import LogLine

MOST_LINE_BYTES: Final = 64 << 10
"""Runtimes cut lines at 16 KiB; of a longer one no more than this is held at a time."""
_MOST_TIME: Final = 40
_STREAMS: Final[dict[bytes, Literal["stdout", "stderr"]]] = {b"stdout": "stdout", b"stderr": "stderr"}
_FIELDS: Final = 4


def read_line(line: bytes) -> LogLine:
    """One line without its newline."""
    fields = line.split(b" ", _FIELDS - 1)
    if len(fields) == _FIELDS and fields[1] in _STREAMS and len(fields[0]) <= _MOST_TIME and fields[0].isascii():
        at, stream, tags, text = fields
        return LogLine(stream=_STREAMS[stream], at=at.decode(), data=text, part=tags.split(b":")[0] == b"P")
    return LogLine(stream="stdout", at="", data=line)


class LineBuffer:
    """Bytes of a log go in as they come, lines come out."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut: LogLine | None = None

    def feed(self, data: bytes) -> Iterator[LogLine]:
        """The lines that are whole now."""
        self._kept += data
        *lines, rest = bytes(self._kept).split(b"\n")
        self._kept = bytearray(rest)
        for line in lines:
            yield from self._pieces(line, is_whole=True)
        if len(rest) > MOST_LINE_BYTES:
            self._kept.clear()
            yield from self._pieces(rest, is_whole=False)

    def end(self) -> Iterator[LogLine]:
        """What is left of a file that gets no more."""
        rest, self._kept = bytes(self._kept), bytearray()
        if rest or self._cut is not None:
            yield from self._pieces(rest, is_whole=True)

    def _pieces(self, line: bytes, *, is_whole: bool) -> Iterator[LogLine]:
        begun, self._cut = self._cut, None
        read = (
            read_line(line) if begun is None else LogLine(stream=begun.stream, at=begun.at, data=line, part=begun.part)
        )
        if is_whole:
            yield read
            return
        self._cut = read
        yield LogLine(stream=read.stream, at=read.at, data=read.data, part=True)
