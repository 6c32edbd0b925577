"""Lines of a watch, for any split and any content."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import Bookmark, Changed, Deleted, KubeError, MalformedResponse, Node, Undecodable
from partage_base.kube.answers import decoded
from partage_base.kube.events import Lines, event_of
from partage_base.kube.pages import page_of

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
    except MalformedResponse:
        assert max(map(len, b"".join(pieces).split(b"\n"))) > 10
    else:
        assert all(isinstance(line, bytes) and len(line) <= 10 for line in lines)


def test_empty_lines_tell_nothing() -> None:
    assert Lines("WATCH /x").take(b"\n\r\n{}\n \n") == [b"{}"]


def pod_line(args: str = "", *, kind: str = "MODIFIED", **spec: object) -> bytes:
    """A line as Go writes it, names first."""
    meta = {"name": "p", "namespace": "team", "uid": "u-1", "resourceVersion": "7", "annotations": {"name": "another"}}
    whole = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"args": args, "nodeName": "n1", **spec}}
    return json.dumps({"type": kind, "object": whole}, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(("kind", "is_gone"), [("ADDED", False), ("MODIFIED", False), ("DELETED", True)])
def test_a_line_that_is_too_long_is_passed_over_by_its_objects_name(kind: str, *, is_gone: bool) -> None:
    reader = Lines("WATCH /x", longest=500)
    raw = pod_line("x" * 2000, kind=kind) + pod_line()
    long, short = [line for begin in range(0, len(raw), 64) for line in reader.take(raw[begin : begin + 64])]
    passed = event_of("WATCH /x", long, Node)
    assert isinstance(passed, Undecodable)
    assert (passed.key, passed.uid, passed.version, passed.is_gone) == (("team", "p"), "u-1", "7", is_gone)
    assert type(event_of("WATCH /x", short, Node)) is Changed
    assert reader.is_between


def test_a_line_without_end_is_given_up_and_holds_no_more_than_its_beginning() -> None:
    reader = Lines("WATCH /x", longest=500, most_skipped=5000)
    line = pod_line("x" * 9000)
    for begin in range(0, 5000, 100):
        assert not reader.take(line[begin : begin + 100])
    with pytest.raises(MalformedResponse, match="a line of more than 5000 bytes"):
        reader.take(line[5000:5100])
    with pytest.raises(MalformedResponse, match="a line of more than 500 bytes"):
        Lines("WATCH /x", longest=500).take(b'{"items":[' + b" " * 500)


def test_an_object_of_another_shape_is_named_with_its_node_and_costs_nobody_else() -> None:
    class Counted(msgspec.Struct):
        spec: dict[str, int]

    passed = event_of("WATCH /x", pod_line(), Counted)
    assert isinstance(passed, Undecodable)
    assert (passed.key, passed.node, passed.is_gone) == (("team", "p"), "n1", False)
    assert passed.annotations == {"name": "another"}
    assert "$.spec" in passed.why
    page = b'{"metadata":{"resourceVersion":"9"},"items":[%s,%s]}' % (
        json.dumps({"metadata": {"name": "a"}, "spec": {"cpus": 1}}).encode(),
        json.dumps({"metadata": {"name": "b"}, "spec": {"nodeName": "n2"}}).encode(),
    )
    found = page_of("GET /x", page, Counted)
    assert found.items == (Counted({"cpus": 1}),)
    assert [(each.key, each.node) for each in found.undecodable] == [(("", "b"), "n2")]


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
    assert isinstance(got, KubeError | Undecodable) or type(got) is told
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
    with pytest.raises(MalformedResponse):
        decoded("GET /x", b'{"metadata":{"x":' + b"[" * 1_000_000, Node)
