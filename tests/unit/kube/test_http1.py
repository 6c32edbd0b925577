"""Bytes parse to the same answer for any split, and to nothing but an answer or a refusal."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube.errors import HEAD_BYTES
from partage_base.kube.http1 import (
    MOST_HEAD_BYTES,
    Answer,
    NotHttp1,
    Request,
    TooLong,
    TruncatedResponse,
    said_of_us,
    written,
)

MOST = 10_000
BODIES = st.binary(max_size=300)


def read(pieces: Iterable[bytes], *, ends: bool = True) -> Answer:
    answer = Answer(MOST)
    for piece in pieces:
        answer.take(piece)
    if ends:
        answer.end()
    return answer


def split(whole: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    return [whole[start:end] for start, end in itertools.pairwise(places)]


def sized(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d OK\r\nX: y\r\ncontent-length:  %d \r\n\r\n%s" % (status, len(body), body)


def chunked(pieces: Iterable[bytes], trailer: bytes = b"") -> bytes:
    chunks = b"".join(b"%X;why=no\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailer + b"\r\n"


@given(BODIES, st.lists(st.integers(0, 400)))
def test_an_answer_with_a_length_is_the_same_however_it_comes(body: bytes, cuts: list[int]) -> None:
    answer = read(split(sized(body), cuts), ends=False)
    assert (answer.status, bytes(answer.body), answer.is_whole, answer.is_kept) == (200, body, True, True)


@given(st.lists(BODIES, max_size=5), st.sampled_from([b"", b"T: 1\r\nU: 2\r\n"]), st.lists(st.integers(0, 2000)))
def test_an_answer_in_chunks_is_the_same_however_it_comes(pieces: list[bytes], trailer: bytes, cuts: list[int]) -> None:
    answer = read(split(chunked(pieces, trailer), cuts), ends=False)
    assert (bytes(answer.body), answer.is_whole, answer.is_kept) == (b"".join(pieces), True, True)


@given(st.lists(BODIES, max_size=3), st.data())
def test_an_answer_that_ends_early_is_cut(pieces: list[bytes], data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([sized(b"".join(pieces)), chunked(pieces)]))
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(TruncatedResponse):
        read([whole[:end]])


def test_an_answer_of_no_said_length_ends_with_its_connection() -> None:
    answer = read([b"HTTP/1.1 200 OK\r\n\r\n", b"{}"], ends=False)
    assert not answer.is_whole
    answer.end()
    assert (bytes(answer.body), answer.is_whole, answer.is_kept) == (b"{}", True, False)


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
        (b"HTTP/1.1 200\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", True),
    ],
)
def test_a_connection_is_kept_as_the_answer_says(head: bytes, *, is_kept: bool) -> None:
    answer = read([head + b"Content-Length: 2\r\n\r\n{}"])
    assert (bytes(answer.body), answer.is_kept) == (b"{}", is_kept)


def test_an_answer_without_a_body_is_whole_at_once() -> None:
    assert read([b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"], ends=False).is_whole


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 999999 Odd\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 5000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10001\r\n\r\n" + b"x" * HEAD_BYTES,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n" + b"x" * HEAD_BYTES,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST + 1),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * MOST_HEAD_BYTES,
        sized(b"{}") + b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_what_is_not_exactly_right_is_refused(raw: bytes) -> None:
    with pytest.raises(NotHttp1):
        read([raw], ends=False)


@pytest.mark.parametrize("size", [b"Content-Length: 10001\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n2711\r\n"])
def test_of_what_is_too_long_the_beginning_is_kept_and_no_more_is_waited_for(size: bytes) -> None:
    with pytest.raises(TooLong) as raised:
        read([b"HTTP/1.1 200 OK\r\n" + size, b"begun", b"x" * HEAD_BYTES], ends=False)
    assert raised.value.head == (b"begun" + b"x" * HEAD_BYTES)[:HEAD_BYTES]


@given(st.binary(max_size=200), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", chunked([])[:-5]]), st.integers(1, 50))
def test_any_bytes_are_an_answer_or_refused_or_cut(data: bytes, start: bytes, step: int) -> None:
    whole = start + data
    with contextlib.suppress(NotHttp1, TruncatedResponse):
        assert read(split(whole, range(0, len(whole), step))).is_whole


def test_a_request_is_one_piece() -> None:
    request = Request("POST", "/api/v1/x", (("a", "b c"),), b"{}")
    assert written(request, "/below", said_of_us("h:1", {"User-Agent": "t"})) == (
        b"POST /below/api/v1/x?a=b+c HTTP/1.1\r\nHost: h:1\r\nUser-Agent: t\r\n"
        b"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "a", "/ä"])
def test_a_path_that_would_be_another_request_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="can't be asked for"):
        written(Request("GET", path), "", b"")


def test_a_header_that_would_be_another_one_is_refused() -> None:
    with pytest.raises(ValueError, match="characters"):
        said_of_us("h", {"Authorization": "Bearer x\r\nHost: y"})
