"""Whatever a container writes into its log, and however it comes: nothing is dropped, and no more than a line is held.

The first byte says in pieces of which size the rest comes.
"""

from __future__ import annotations

from typing import Final

from partage_cli.machine.runtime.log_lines import MOST_LINE_BYTES, LineBuffer, read_line

_AT: Final = b"2026-01-02T03:04:05.678901234Z"
SEEDS: Final = (
    b"\x07" + _AT + b" stdout F text\n" + _AT + b" stderr P half\n",
    b"\x01no line\n\n" + _AT + b" stdout F",
    b"\xff" + _AT + b" stdout P:more \xff\x00\n",
)
DICTIONARY: Final = (b" stdout ", b" stderr ", b" F ", b" P ", b"P:", b"\n", _AT)


def target(data: bytes) -> str:
    size, text = 1 + sum(data[:1]), data[1:]
    buffer = LineBuffer()
    lines = [line for at in range(0, len(text), size) for line in buffer.feed(text[at : at + size])]
    lines += buffer.end()
    whole = text.removesuffix(b"\n").split(b"\n") if text else []
    if len(text) <= MOST_LINE_BYTES and lines != [read_line(line) for line in whole]:
        raise AssertionError("lines that depend on how they come")
    if any(len(line.data) > MOST_LINE_BYTES + size for line in lines):
        raise AssertionError("more than a line is held")
    return f"lines {len(lines)} {sum(line.part for line in lines)} {sum(not line.at for line in lines)}"
