"""Lines of a watch, whatever way they were cut on, and whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import Bookmark, Changed, Deleted, KubeError, Node, Nonsense
from partage_base.kube.answers import decoded, page_of
from partage_base.kube.events import Lines, event_of

LINE = st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line and line.strip() == line)


@given(lines=st.lists(LINE, max_size=8), cuts=st.lists(st.integers(0, 250), max_size=8))
def test_lines_come_whole_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(line + b"\n" for line in lines)
    reader = Lines("WATCH /x")
    marks = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    pieces = [raw[begin:end] for begin, end in pairwise(marks)]
    assert [line for piece in pieces for line in reader.take(piece)] == lines
    assert reader.is_between


@given(pieces=st.lists(st.binary(max_size=12), max_size=12))
def test_no_line_and_no_beginning_of_one_is_ever_too_long(pieces: list[bytes]) -> None:
    reader = Lines("WATCH /x", longest=10)
    try:
        lines = [line for piece in pieces for line in reader.take(piece)]
    except Nonsense:
        assert max(map(len, b"".join(pieces).split(b"\n"))) > 10
    else:
        assert all(len(line) <= 10 for line in lines)


def test_empty_lines_tell_nothing() -> None:
    assert Lines("WATCH /x").take(b"\n\r\n{}\n \n") == [b"{}"]


def event_or_error(read: Callable[[], object]) -> object:
    try:
        return read()
    except KubeError as error:
        return error


KINDS = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "OTHER"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "resourceVersion", "name", "labels", "code"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(kind=KINDS, body=JSON)
def test_a_line_of_any_shape_is_an_event_or_an_expected_error(kind: str, body: object) -> None:
    line = json.dumps({"type": kind, "object": body}).encode()
    got = event_or_error(lambda: event_of("WATCH /x", line, Node))
    told = {"ADDED": Changed, "MODIFIED": Changed, "DELETED": Deleted, "BOOKMARK": Bookmark}.get(kind)
    assert isinstance(got, KubeError) or type(got) is told
    assert str(got).isprintable()


@given(raw=st.binary(max_size=60))
def test_any_bytes_are_an_object_or_nonsense(raw: bytes) -> None:
    reads: list[Callable[[], object]] = [
        lambda: event_of("WATCH /x", raw, Node),
        lambda: decoded("GET /x", raw, Node),
        lambda: page_of("GET /x", raw, Node),
    ]
    for read in reads:
        got = event_or_error(read)
        assert not isinstance(got, KubeError) or str(got).isprintable()


def test_a_deep_object_is_nonsense_and_no_crash() -> None:
    with pytest.raises(Nonsense):
        decoded("GET /x", b'{"metadata":{"x":' + b"[" * 1_000_000, Node)
