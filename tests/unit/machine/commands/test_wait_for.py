"""`partage wait-for` prints why it waits, and then becomes the command, with the amounts among its variables."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from partage_oci.messages import Answer, Go, No, Waits, answer_line
from partage_plugins.api.places import OCI_SOCKET
from support.oci_program import Daemon
from unit.cli.program import process

SAYS = ("sh", "-c", 'echo "$PARTAGE_SHARE $PARTAGE_MEMORY ${PARTAGE_LIMIT-unset}"')


def agent(root: Path, *conversations: tuple[Answer, ...]) -> Daemon:
    """An agent that gives each client these answers, one after the other, and then closes the connection."""
    return Daemon(root / OCI_SOCKET, *(b"".join(map(answer_line, answers)) for answers in conversations))


def waited(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return process(root, "wait-for", *words)


@pytest.mark.slow
def test_it_says_why_it_waits_and_then_is_the_command(tmp_path: Path) -> None:
    with agent(tmp_path, (Waits(why="no card has room"), Waits(why="no card has room"), Go())) as server:
        done = waited(tmp_path, "--share", "300", "--memory", "4Gi", "--", *SAYS)
    assert server.asked == [{"ask": "wait", "env": ["PARTAGE_SHARE=300", "PARTAGE_MEMORY=4Gi"]}]
    assert (done.returncode, done.stdout) == (0, "300 4Gi unset\n")
    assert done.stderr == "waiting: no card has room\n"


@pytest.mark.slow
def test_an_agent_that_goes_away_meanwhile_is_asked_again(tmp_path: Path) -> None:
    with agent(tmp_path, (Waits(why="no card has room"),), (Go(),)) as server:
        done = waited(tmp_path, "--share", "300", "--", "true")
    assert (done.returncode, len(server.asked)) == (0, 2)
    assert "it closed the connection without an answer" in done.stderr


@pytest.mark.slow
def test_what_would_never_fit_and_an_agent_that_is_not_there_are_said(tmp_path: Path) -> None:
    with agent(tmp_path, (No(why="this machine has no cards"),)):
        done = waited(tmp_path, "--share", "300", "--", "true")
    assert (done.returncode, done.stderr) == (1, "partage: this machine has no cards [PTG201]\n")
    (tmp_path / OCI_SOCKET).unlink()
    assert "`partage up` starts it" in waited(tmp_path, "--share", "300", "--", "true").stderr


def test_a_command_that_is_not_there_is_said_before_anything_is_waited_for(tmp_path: Path) -> None:
    done = waited(tmp_path, "--share", "300", "--", "dokcer", "run")
    assert (done.returncode, done.stderr) == (1, "partage: there is no program 'dokcer'; name one, after -- [PTG201]\n")
