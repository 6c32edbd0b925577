"""What leaves us and what comes back, as text: paths, refusals, lines of a watch."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.errors import Refused
from rig.talking.api import refusal
from rig.talking.connection import Answer
from rig.talking.resources import EVENTS, JOBS, NODES, PODS, path_of
from rig.talking.watching import Change, decoded


def status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}).encode()


def test_paths_are_those_of_the_api() -> None:
    assert PODS.at() == "/api/v1/pods"
    assert PODS.at("team-a") == "/api/v1/namespaces/team-a/pods"
    assert PODS.at("team-a", "web", "log") == "/api/v1/namespaces/team-a/pods/web/log"
    assert NODES.at(name="n1", sub="status") == "/api/v1/nodes/n1/status"
    assert JOBS.at("team-a", "j") == "/apis/batch/v1/namespaces/team-a/jobs/j"
    assert EVENTS.at(None) == "/api/v1/events"


def test_a_manifest_says_where_it_lives() -> None:
    assert path_of({"kind": "Pod", "metadata": {"namespace": "a", "name": "b"}}) == "/api/v1/namespaces/a/pods/b"
    role = {"kind": "ClusterRole", "metadata": {"name": "r"}}
    assert path_of(role) == "/apis/rbac.authorization.k8s.io/v1/clusterroles/r"


def test_a_status_becomes_a_refusal_with_its_words() -> None:
    error = refusal(Answer(409, status(reason="AlreadyExists", message='pods "web" already exists', code=409)))
    assert (error.status, error.reason, error.message) == (409, "AlreadyExists", 'pods "web" already exists')


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(404, b"404 page not found\n"), "404 Not Found: 404 page not found"),
        (Answer(502, b"<html>"), "502 Bad Gateway: <html>"),
        (Answer(599, b""), "599 no reason: "),
        (Answer(500, b'{"kind": "Pod"}'), '500 Internal Server Error: {"kind": "Pod"}'),
        (Answer(403, b'"text"'), '403 Forbidden: "text"'),
        (Answer(400, b"\xff"), "400 Bad Request: \ufffd"),
    ],
)
def test_what_is_no_status_is_told_as_it_came(answer: Answer, told: str) -> None:
    assert str(refusal(answer)) == told


def test_a_long_answer_is_not_told_to_its_end() -> None:
    assert len(refusal(Answer(500, b"x" * 100_000)).message) == 1000


@given(st.integers(400, 599), st.binary(max_size=200))
def test_every_answer_becomes_a_refusal(number: int, content: bytes) -> None:
    assert refusal(Answer(number, content)).status == number


def test_a_line_of_a_watch_is_a_change_of_an_object() -> None:
    event = decoded(b'{"type":"DELETED","object":{"metadata":{"name":"web"}}}\n')
    assert event.change is Change.DELETED
    assert event.object["metadata"]["name"] == "web"


def test_a_watch_that_began_too_long_ago_is_refused() -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (500)"}
    with pytest.raises(Refused) as refused:
        decoded(json.dumps({"type": "ERROR", "object": gone}).encode())
    assert (refused.value.status, refused.value.reason) == (410, "Expired")
