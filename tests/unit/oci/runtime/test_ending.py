"""A deletion is reported to the agent, without waiting for it."""

from __future__ import annotations

import socket

import pytest

from support.oci_program import Daemon, Program

pytestmark = pytest.mark.slow


def test_the_agent_hears_which_container_is_deleted(program: Program) -> None:
    with Daemon(program.socket, b"") as agent:
        done = program.run("--root", "/run/r", "delete", "--force", "c1")
    assert done.stdout.decode().split() == ["--root", "/run/r", "delete", "--force", "c1"]
    assert agent.asked == [{"ask": "delete", "id": "c1"}]


def test_an_agent_that_is_away_changes_nothing(program: Program) -> None:
    done = program.run("delete", "c1")
    assert (done.returncode, done.stdout.decode().split(), done.stderr) == (0, ["delete", "c1"], b"")


def test_an_agent_that_takes_no_more_is_not_waited_for(program: Program) -> None:
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(program.socket))
        busy.listen(0)
        for _ in range(3):  # there is no accept: the first ones wait in the queue
            assert program.run("delete", "c1").returncode == 0


def test_without_an_id_nobody_is_told(program: Program) -> None:
    with Daemon(program.socket, b"") as agent:
        assert program.run("delete").returncode == 0
    assert agent.asked == []
