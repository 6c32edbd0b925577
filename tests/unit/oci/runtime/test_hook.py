"""The hook: a container starts only after the broker has been told of it."""

from __future__ import annotations

import json
from subprocess import CompletedProcess
from typing import Any

import pytest

from support.oci_program import Daemon, Program, line

pytestmark = pytest.mark.slow

KEY = "0123456789abcdef0123456789abcdef"
ID = "1a" * 32
ENTERED = line(answer="entered")
STAYS = "partage: the container does not start: "


def state(**said: Any) -> bytes:
    """The state as runc and crun write it."""
    known = {
        "ociVersion": "1.0.2",
        "id": ID,
        "status": "creating",
        "pid": 7,
        "bundle": "/b",
        "annotations": {"id": "b"},
    }
    return json.dumps(known | said).encode()


def said(done: CompletedProcess[bytes]) -> str:
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(STAYS)
    assert done.stderr.count(b"\n") == 1
    return done.stderr.decode().removeprefix(STAYS).removesuffix("\n")


def test_the_broker_hears_which_container_begins_with_which_process(program: Program) -> None:
    with Daemon(program.broker, ENTERED) as broker:
        done = program.run("hook", KEY, stdin=state())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert broker.asked == [{"ask": "enter", "key": KEY, "container": ID, "pid": 7}]


def test_a_broker_that_refuses_keeps_it_from_starting_in_its_own_words(program: Program) -> None:
    with Daemon(program.broker, line(answer="no", why="the grant has ended")):
        assert said(program.run("hook", KEY, stdin=state())) == "the grant has ended"


def test_a_broker_that_ends_before_it_answered_is_asked_again(program: Program) -> None:
    with Daemon(program.broker, b"", ENTERED) as broker:
        assert program.run("hook", KEY, stdin=state()).returncode == 0
    assert len(broker.asked) == 2


def test_a_broker_that_is_away_keeps_it_from_starting(program: Program) -> None:
    text = said(program.run("hook", KEY, stdin=state()))
    assert text == f"no broker answers at {program.broker}: No such file or directory; is it running?"


def test_a_broker_that_hangs_keeps_it_from_starting(program: Program) -> None:
    with Daemon(program.broker, None):
        text = said(program.run("hook", KEY, stdin=state()))
    assert text == f"the broker at {program.broker} did not answer within 0.2 s; see its log"


@pytest.mark.parametrize(
    "read",
    [b"", b"[]", b"{", state(pid="7"), state(pid=1.5), state(pid=None), state(id=7), b'{"pid":7}', state() + b"}"],
)
def test_what_is_no_state_starts_nothing(program: Program, read: bytes) -> None:
    text = said(program.run("hook", KEY, stdin=read))
    assert text == "what is on stdin is no state of a container, with `id` and `pid`"


def test_a_state_without_end_is_not_read_to_its_end(program: Program) -> None:
    text = said(program.run("hook", KEY, stdin=state() + b" " * (1 << 20)))
    assert text == "its state on stdin can't be read: File too large"


def test_without_a_key_it_starts_nothing(program: Program) -> None:
    assert said(program.run("hook", stdin=state())) == "`hook` needs the key of a claim behind it"


def test_settings_that_are_wrong_start_nothing(program: Program) -> None:
    program.configure("brokre /x")
    assert "there is no setting `brokre`" in said(program.run("hook", KEY, stdin=state()))
