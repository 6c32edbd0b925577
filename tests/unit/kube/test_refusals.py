"""Each refusal of the API server is an error of its own, whose text says what to do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import (
    ApiServer,
    Conflict,
    Gone,
    Node,
    NotAllowed,
    NotFound,
    ServerFailed,
    StatusError,
    Throttled,
    node_path,
)
from partage_base.kube.answers import refusal
from partage_base.kube.errors import LONGEST_WORDS
from support.fake_api import FakeApi, Refuse

CALL = "GET /api/v1/nodes/n1"
DETAILS = {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, StatusError),
        (401, NotAllowed),
        (403, NotAllowed),
        (404, NotFound),
        (405, StatusError),
        (409, Conflict),
        (410, Gone),
        (422, StatusError),
        (429, Throttled),
        (500, ServerFailed),
        (503, ServerFailed),
        (504, ServerFailed),
    ],
)
async def test_a_status_is_an_error_that_says_what_a_caller_does_about_it(
    api: FakeApi, server: ApiServer, status: int, error: type[StatusError]
) -> None:
    api.expect(Refuse(status, "Because", "of this"))
    with pytest.raises(StatusError) as raised:
        await server.get(node_path("n1"), Node)
    assert type(raised.value) is error
    assert str(raised.value).startswith(f"GET /api/v1/nodes/n1: {status} Because: of this")
    assert len(api.asked) == 1


def test_one_learns_what_to_do_about_credentials_and_rights() -> None:
    assert str(refusal(CALL, 401, b"{}")) == f"{CALL}: 401; renew the credentials"
    assert str(refusal(CALL, 403, b"{}")) == f"{CALL}: 403; grant it by RBAC"


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("3", {}, 3.0),
        (None, DETAILS, 7.0),
        ("2", DETAILS, 2.0),
        ("0", {}, None),
        ("99999", {}, 300.0),
        ("9" * 40, {}, None),
        ("-1", {}, None),
        ("²", {}, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None),
        (None, {}, None),
        (None, {"details": None}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_how_long_to_wait_is_taken_from_the_header_or_the_details(
    header: str | None, body: object, expected: float | None, status: int
) -> None:
    error = refusal(CALL, status, json.dumps(body).encode(), retry_after=header)
    assert isinstance(error, Throttled | ServerFailed)
    assert error.retry_after_s == expected


async def test_the_wait_comes_over_the_wire(api: FakeApi, server: ApiServer) -> None:
    api.expect(Refuse(429, retry_after="2"))
    with pytest.raises(Throttled) as raised:
        await server.get(node_path("n1"), Node)
    assert raised.value.retry_after_s == 2.0


def test_the_page_of_a_proxy_is_told_in_one_short_printable_line() -> None:
    page = b"<html>\n <h1>502 Bad\x1b[31m Gateway</h1>\n" + b"x" * 5000
    error = refusal(CALL, 502, page)
    assert isinstance(error, ServerFailed)
    assert str(error).startswith(f"{CALL}: 502: <html> <h1>502 Bad [31m Gateway</h1> xxx")
    assert str(error).isprintable()
    assert len(error.message) == LONGEST_WORDS


async def test_a_refusal_of_any_size_is_read_no_further_than_words_go(api: FakeApi, server: ApiServer) -> None:
    api.expect(Refuse(500, body=b"x" * (60 << 10)))
    with pytest.raises(ServerFailed) as raised:
        await server.get(node_path("n1"), Node)
    assert len(raised.value.message) == LONGEST_WORDS


@given(status=st.integers(400, 599), body=st.binary(max_size=200), header=st.none() | st.text(max_size=12))
def test_whatever_is_answered_is_a_refusal_in_one_line(status: int, body: bytes, header: str | None) -> None:
    error = refusal(CALL, status, body, retry_after=header)
    assert error.status == status
    assert str(error).isprintable()
    assert isinstance(error, Throttled) == (status == 429)
    assert isinstance(error, ServerFailed) == (status >= 500)
