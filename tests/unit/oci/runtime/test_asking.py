"""A container that requests part of a card is created as the agent answers, or refused with the agent's message."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rig.client import wait
from support.oci_program import Daemon, Program, line
from support.sanitized import OPTIONS

pytestmark = pytest.mark.slow

GO = line(answer="go", runtime="")
ASKS = {"process": {"env": ["PATH=/bin", "PARTAGE_SHARE=300"]}}


@pytest.mark.parametrize(
    "config",
    [
        b'{"process":{"env":["PARTAGE_SHARE=300"]}}',
        b'{"process":{"env":["\\u0050ARTAGE_MEMORY\\u003d8Gi"]}}',
        b'{"process":{"env":["DOCKER_RESOURCE_PARTAGE-MILLI=300"]}}',
        b'{"annotations":{"partage.dev/gpu-milli":"300"}}',
        b'{"annotations":{"partage\\u002edev\\/gpu-milli":"300"}}',
        b'{"process":{"env":[]},"process":{"env":["PARTAGE_CARDS="]}}',
    ],
)
def test_our_words_are_a_question_to_the_agent(program: Program, config: bytes) -> None:
    bundle = program.bundle(config)
    with Daemon(program.socket, GO) as agent:
        done = program.run("--root", "/run/r", "create", "--bundle", bundle, "c1")
    assert done.returncode == 0
    question = {"ask": "create", "id": "c1", "bundle": str(bundle), "root": "/run/r", "runtime": str(program.runtime)}
    assert agent.asked == [question]


@pytest.mark.parametrize(
    "config",
    [
        b"{}",
        b"[]",
        b'{"process":{"env":["PARTAGE","PARTAGE_SHARE","MY_PARTAGE_SHARE=1","partage_share=1",7]}}',
        b'{"process":{"env":{"a":"PARTAGE_SHARE=1"},"args":["PARTAGE_SHARE=300"]}}',
        b'{"process":{"env":["PARTAGE_SHARE=1"]},"process":{}}',
        b'{"annotations":{"partage.dev":"1","x.partage.dev/a":"1","a":"partage.dev/a"}}',
        b'{"annotations":["partage.dev/a"],"env":["PARTAGE_SHARE=1"]}',
        b'{"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]}}',
    ],
)
def test_without_our_words_nobody_is_asked(program: Program, config: bytes) -> None:
    with Daemon(program.socket, line(answer="no", why="")) as agent:
        assert program.create(config).returncode == 0
    assert agent.asked == []


def test_the_process_that_asks_becomes_the_runtime(program: Program) -> None:
    program.configure(runtime=program.script("pid", "#!/bin/sh\necho $$\n"))
    with Daemon(program.socket, GO) as agent:
        assert [int(program.create(ASKS).stdout)] == agent.pids


def test_the_agent_may_name_another_runtime(program: Program) -> None:
    other = program.script("other", "#!/bin/sh\necho other\n")
    with Daemon(program.socket, line(answer="go", runtime=str(other))):
        assert program.create(ASKS).stdout == b"other\n"


def test_a_refusal_is_in_the_log_on_stderr_and_in_the_status(program: Program) -> None:
    why = 'no card has a share of 900 milli left; the most is 300 ("card 0")'
    with Daemon(program.socket, line(answer="no", why=why)):
        done = program.create(ASKS)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"partage: {why}\n"
    logged = json.loads(program.log.read_text())
    assert (logged["level"], logged["msg"]) == ("error", f"partage: {why}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", logged["time"])


def test_the_log_keeps_what_stood_in_it(program: Program) -> None:
    program.log.write_text("before\n")
    with Daemon(program.socket, line(answer="no", why="full")):
        program.run("--log", program.log, "create", "--bundle", program.bundle(ASKS), "c1")
    first, second = program.log.read_text().splitlines()
    assert first == "before"
    assert second.startswith('level=error msg="partage: full" time="')


@pytest.mark.parametrize(("log", "is_written"), [("file:{}", True), ("syslog:{}", False), ("journald:x", False)])
def test_of_the_logs_that_crun_has_only_files_are_written(program: Program, log: str, *, is_written: bool) -> None:
    bundle = program.bundle(ASKS)
    with Daemon(program.socket, line(answer="no", why="full")):
        done = program.run("--log", log.format("log"), "create", "--bundle", bundle, "c1", cwd=program.folder)
    assert done.stderr == b"partage: full\n"
    assert program.log.exists() == is_written
    assert not list(program.folder.glob("*:*"))


def test_a_log_that_cannot_be_written_leaves_stderr(program: Program) -> None:
    with Daemon(program.socket, line(answer="no", why="full")):
        done = program.run("--log", "/no/log", "create", "--bundle", program.bundle(ASKS), "c1")
    assert (done.returncode, done.stderr) == (1, b"partage: full\n")


def test_a_refusal_is_one_line_whatever_the_agent_says(program: Program) -> None:
    with Daemon(program.socket, line(answer="no", why="a\nb\x00c\x7f\x1b[31m é")):
        assert program.create(ASKS).stderr.decode() == "partage: a b\n"
    with Daemon(program.folder / "other", line(answer="no", why="a\nb\x7f\x1b[31m é")):
        program.configure(socket=program.folder / "other")
        assert program.create(ASKS).stderr.decode() == "partage: a b  [31m é\n"


def test_an_agent_that_starts_again_is_waited_for(program: Program) -> None:
    program.configure(agent_wait_ms=600000)
    argv = (program.path, "create", "--bundle", program.bundle(ASKS), "c1")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=os.environ | OPTIONS) as waiting:
        try:
            with Daemon(program.socket, b"") as agent:
                wait.found("the question", lambda: agent.asked)
            tries_on(waiting)  # it is refused: the agent does not listen
            program.socket.unlink()
            tries_on(waiting)
            with Daemon(program.socket, GO) as agent:
                assert waiting.wait() == 0
        finally:
            waiting.kill()
    assert len(agent.asked) == 1


def tries_on(waiting: subprocess.Popen[bytes]) -> None:
    """Wait until it has tried again, from now on: it sleeps between two tries, and for nothing else."""

    def sleeps() -> int:
        assert waiting.poll() is None, "it waits no more"
        status = Path(f"/proc/{waiting.pid}/status").read_text()
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
        return int(found[1]) if found else 0

    before = sleeps()
    wait.found("another try", lambda: sleeps() >= before + 3 or None)


def test_an_agent_that_ends_before_it_answered_is_asked_again(program: Program) -> None:
    program.configure(agent_wait_ms=600000)
    with Daemon(program.socket, b"", b'{"answer":', GO) as agent:
        assert program.create(ASKS).returncode == 0
    assert len(agent.asked) == 3


def refusal(program: Program) -> str:
    done = program.create(ASKS)
    assert (done.returncode, done.stdout) == (1, b"")
    return done.stderr.decode().removeprefix("partage: ").removesuffix("\n")


def test_an_agent_that_stays_away_is_a_refusal(program: Program) -> None:
    said = f"no agent answers at {program.socket}: No such file or directory; is it running?"
    assert refusal(program) == said
    with Daemon(program.socket, GO):
        pass  # as after a kill
    assert refusal(program) == said.replace("No such file or directory", "Connection refused")


def test_an_agent_that_never_answers_is_a_refusal(program: Program) -> None:
    with Daemon(program.socket, None):
        assert refusal(program) == f"the agent at {program.socket} did not answer within 0.2 s; see its log"


@pytest.mark.parametrize(
    "answer",
    [
        b"\n",
        b"go\n",
        b'{"answer":"went"}\n',
        b'{"answer":"no"}\n',
        b'{"answer":["go"]}\n',
        b'"go"\n',
        b'{"answer":"go"}}\n',
        b" " * 65536,
    ],
)
def test_nonsense_is_a_refusal(program: Program, answer: bytes) -> None:
    with Daemon(program.socket, answer):
        said = f"what the agent at {program.socket} answered is no answer; are both of one version?"
        assert refusal(program) == said


def test_a_runtime_that_the_agent_names_and_is_not_there_is_a_refusal(program: Program) -> None:
    with Daemon(program.socket, line(answer="go", runtime="/no/nvidia")):
        assert refusal(program) == "the runtime /no/nvidia can't be started: No such file or directory"
    assert json.loads(program.log.read_text())["level"] == "error"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who may be another user")
def test_who_may_not_ask_is_told_who_may(program: Program) -> None:
    program.folder.chmod(0o755)
    program.bundle(ASKS)
    with Daemon(program.socket, b""):
        program.socket.chmod(0o600)
        nobody = ("setpriv", "--reuid=65534", "--clear-groups")
        done = program.run("create", "-b", program.folder / "bundle", "c1", inside=nobody)
    assert done.stderr.decode().endswith(": Permission denied; it answers root alone\n")


def test_what_is_odd_in_names_is_escaped(program: Program) -> None:
    bundle = program.bundle(ASKS, name='b"\\\n\tü')
    with Daemon(program.socket, GO) as agent:
        program.run("create", "--bundle", bundle, 'c"1')
    asked: dict[str, Any] = agent.asked[0]
    assert (asked["id"], asked["bundle"], asked["root"]) == ('c"1', str(bundle), "")


def test_paths_are_told_from_the_root(program: Program) -> None:
    program.bundle(ASKS)
    with Daemon(program.socket, GO) as agent:
        program.run("--root", "state", "create", "--bundle", "bundle", "c1", cwd=program.folder)
    assert agent.asked[0]["bundle"] == f"{program.folder}/bundle"
    assert agent.asked[0]["root"] == f"{program.folder}/state"


def test_without_an_id_the_runtime_says_what_is_wrong(program: Program) -> None:
    assert program.run("create", "--bundle", program.bundle(ASKS)).returncode == 0
