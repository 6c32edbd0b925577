"""Any bytes on the port are read as requests of kube-scheduler, or get one refusal."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partage_scheduler.extender.wire import MOST_BODY_BYTES, MOST_HEAD_BYTES, Ask, Listener, Unfit, answer, refusal

HEAD = b"Host: h\r\nUser-Agent: Go-http-client/1.1\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n"


def request(body: bytes = b"{}", path: bytes = b"/filter", more: bytes = b"") -> bytes:
    return b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n%b\r\n%b" % (path, HEAD, len(body), more, body)


def all_of(listener: Listener) -> list[Ask]:
    return list(iter(listener.next, None))


def test_what_go_sends_is_a_request() -> None:
    listener = Listener()
    listener.hear(request(b'{"Pod":{}}'))
    assert all_of(listener) == [Ask("/filter", b'{"Pod":{}}', is_last=False)]
    assert listener.is_between


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_it_does_not_matter_where_bytes_are_cut(bodies: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(map(request, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    listener, found = Listener(), list[Ask]()
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        listener.hear(whole[start:end])
        found += all_of(listener)
    assert [each.body for each in found] == bodies
    assert listener.is_between


@given(st.lists(st.binary(max_size=200), max_size=8))
@example([b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"])
@example([b"\r\n\r\n"])
def test_garbage_is_waited_with_or_refused(pieces: list[bytes]) -> None:
    listener = Listener()
    with suppress(Unfit):
        for piece in pieces:
            listener.hear(piece)
            all_of(listener)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"GET /filter HTTP/1.1\r\n\r\n", 405),
        (b"POST /filter HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"POST /filter HTTP/2\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"POST filter HTTP/1.1\r\n\r\n", 400),
        (b"POST /a b HTTP/1.1\r\n\r\n", 400),
        (b"POST /filter HTTP/1.1\r\n\r\n", 411),
        (b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
        (b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", 411),
        (b"POST /filter HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\r\nContent-Length: 0x2\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\r\nContent-Length : 2\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\r\nContent-Length: 2\r\n folded\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\r\nContent-Length: 2\r\nA: b\x00\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\nContent-Length: 2\n\r\n\r\n{}", 400),
        (b"POST /filter HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MOST_BODY_BYTES + 1), 413),
        (b"POST /filter HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", 417),
        (b"POST /filter HTTP/1.1\r\nA: " + b"b" * MOST_HEAD_BYTES, 431),
        (b"x" * (MOST_HEAD_BYTES + 1), 431),
    ],
)
def test_what_is_no_such_request_is_refused(said: bytes, status: int) -> None:
    listener = Listener()
    listener.hear(said)
    with pytest.raises(Unfit) as caught:
        listener.next()
    assert caught.value.status == status
    assert b"Connection: close\r\n" in refusal(caught.value)


def test_who_wants_to_end_it_is_told_that_it_ends() -> None:
    listener = Listener()
    listener.hear(request(more=b"Connection: close\r\n"))
    (ask,) = all_of(listener)
    assert ask.is_last
    assert answer(b"{}", is_last=True).endswith(b"Connection: close\r\n\r\n{}")
    assert answer(b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")
