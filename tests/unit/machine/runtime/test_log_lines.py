"""Lines of a container's log are read whole, however they come, and nothing of them is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.machine.runtime.log_lines import MOST_LINE_BYTES, LineBuffer, read_line
from partage_cli.machine.wire.messages import LogLine

AT = "2026-01-02T03:04:05.678901234Z"


def test_a_line_has_its_time_its_stream_and_its_text() -> None:
    assert read_line(f"{AT} stdout F a  b ".encode()) == LogLine(stream="stdout", at=AT, data=b"a  b ")
    assert read_line(f"{AT} stderr P ".encode()) == LogLine(stream="stderr", at=AT, data=b"", part=True)
    assert read_line(f"{AT} stderr P:x \xff".encode("latin-1")).data == b"\xff"


@pytest.mark.parametrize("line", [b"", b"text", b"2026 stdin F x", b"\xff stdout F x", b"x" * 41 + b" stdout F x"])
def test_what_is_no_line_of_the_runtime_is_passed_on_as_it_stands(line: bytes) -> None:
    assert read_line(line) == LogLine(stream="stdout", at="", data=line)


@given(st.lists(st.binary(max_size=30).filter(lambda text: b"\n" not in text), max_size=8), st.integers(1, 40))
def test_lines_are_the_same_in_whatever_pieces_they_come(texts: list[bytes], size: int) -> None:
    whole = b"".join(b"%s stdout F %s\n" % (AT.encode(), text) for text in texts)
    buffer = LineBuffer()
    lines = [line for at in range(0, len(whole), size) for line in buffer.feed(whole[at : at + size])]
    assert [line.data for line in lines] == texts
    assert list(buffer.end()) == []


def test_a_line_without_end_comes_in_parts_of_one_stream() -> None:
    buffer = LineBuffer()
    said = AT.encode() + b" stderr F " + b"x" * (2 * MOST_LINE_BYTES)
    lines = [
        *buffer.feed(said),
        *buffer.feed(b"y" * MOST_LINE_BYTES),
        *buffer.feed(b"z\n" + AT.encode() + b" stdout F w\n"),
    ]
    assert {(line.stream, line.at) for line in lines[:-1]} == {("stderr", AT)}
    assert [line.part for line in lines] == [True] * (len(lines) - 2) + [False, False]
    assert b"".join(line.data for line in lines[:-1]) == b"x" * (2 * MOST_LINE_BYTES) + b"y" * MOST_LINE_BYTES + b"z"
    assert lines[-1].data == b"w"


def test_what_a_full_disk_cut_off_is_told_at_the_end() -> None:
    buffer = LineBuffer()
    assert list(buffer.feed(AT.encode() + b" stdout F half")) == []
    assert [line.data for line in buffer.end()] == [b"half"]
