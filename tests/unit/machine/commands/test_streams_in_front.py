"""exec, attach and the input of run, before a scripted manager and a runtime's streams."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from partage_cli.machine.pods.pod import Container, Pod, Spec
from partage_cli.machine.wire.messages import (
    Attach,
    Done,
    DoneInspect,
    DonePods,
    DoneRun,
    DoneStream,
    DoneWait,
    Exec,
    Inspect,
    LogLine,
    Logs,
    No,
    Ps,
    Question,
    Run,
    Wait,
)
from rig.patience import patience_s
from support.scripted_manager import Said, Script, pod, scripted
from support.spdy_runtime import Peer, spdy_runtime
from unit.cli.program import PARTAGE, environment

SUCCESS = b'{"status":"Success"}'
FAILURE_4 = b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"4"}]}}'
AT = "2026-11-23T19:30:00Z"


@dataclass
class Machine:
    """One pod, whose container has its streams at `url`."""

    url: str
    spec: Container
    log: tuple[LogLine, ...] = ()
    phase: str = "exited"
    ends: threading.Event = field(default_factory=threading.Event)

    def script(self, question: Question) -> Iterable[Said]:
        if isinstance(question, Wait) or (isinstance(question, Logs) and question.follow):
            self.ends.wait(patience_s())
        if isinstance(question, Logs):
            return (*self.log, Done())
        asked = Pod(spec=Spec(containers=(self.spec,)))
        answers: Mapping[type, Said] = {
            Run: DoneRun(pod=pod()),
            Ps: DonePods(pods=(pod(phase=self.phase),)),
            Inspect: DoneInspect(pod=pod(), record=asked),
            Wait: DoneWait(exit_code=9),
            Exec: DoneStream(url=self.url, container="c", tty=False),
            Attach: DoneStream(url=self.url, container="c", tty=self.spec.tty),
        }
        return (answers[type(question)],)


def ran(script: Script, *words: str, given: bytes | int = b"") -> tuple[int, bytes, bytes, list[Question]]:
    """As a process; what is given is its input, or a terminal's descriptor."""
    with scripted(script) as manager:
        process = subprocess.Popen(
            [*PARTAGE, "--root", str(manager.root), *words],
            env=environment(),
            stdin=given if isinstance(given, int) else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = process.communicate(None if isinstance(given, int) else given)
        return process.returncode, out, err, manager.asked


def test_a_command_ends_with_its_code_and_each_stream_is_itself() -> None:
    async def serve(peer: Peer) -> None:
        await peer.opened(3)
        peer.send("stdout", b"out")
        peer.send("stderr", b"err")
        peer.end(FAILURE_4)

    with spdy_runtime(serve) as url:
        machine = Machine(url, Container(name="main", image="i"))
        code, out, err, asked = ran(machine.script, "exec", "train", "ls", "-l")
    assert (code, out, err) == (4, b"out", b"err")
    assert asked == [Exec(name="train", argv=("ls", "-l"))]


def test_a_command_gets_its_input_to_its_end() -> None:
    async def serve(peer: Peer) -> None:
        await peer.opened(4)
        async for _, piece in peer.received():
            if piece is None:
                break
            peer.send("stdout", piece[::-1])
        peer.end(SUCCESS)

    with spdy_runtime(serve) as url:
        machine = Machine(url, Container(name="main", image="i"))
        code, out, err, _ = ran(machine.script, "exec", "-i", "train", "rev", given=b"abc")
    assert (code, out, err) == (0, b"cba", b"")


def test_a_command_that_was_not_run_is_125() -> None:
    refused = No(code="refused", why="container main of pod train does not run")
    assert ran(lambda _: (refused,), "exec", "train", "ls")[:3] == (
        125,
        b"",
        b"partage: container main of pod train does not run\n",
    )


def test_a_terminal_is_asked_for_where_there_is_one() -> None:
    for words in (("exec", "-it", "train", "sh"), ("run", "-it", "busybox")):
        code, _, err, asked = ran(lambda _: (), *words)
        assert (code, asked) == (2, [])
        assert b"the input is no terminal" in err


def test_input_reaches_the_container_with_its_end_and_the_log_is_shown() -> None:
    got: list[tuple[str, bytes | None]] = []

    async def serve(peer: Peer) -> None:
        await peer.opened(2)
        async for piece in peer.received():
            got.append(piece)
            if piece == ("stdin", None):
                break
        peer.end(SUCCESS)
        machine.ends.set()

    with spdy_runtime(serve) as url:
        log = (LogLine(stream="stdout", at=AT, data=b"three"),)
        machine = Machine(url, Container(name="main", image="i", stdin=True), log)
        code, out, err, asked = ran(machine.script, "run", "-i", "busybox", given=b"one\ntwo\n")
    assert (code, out, err) == (9, b"three\n", b"")
    assert b"".join(data or b"" for _, data in got) == b"one\ntwo\n"
    assert Attach(name="uid-of-train", output=False) in asked


@pytest.fixture
def terminal() -> Generator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_a_terminal_shows_what_was_written_before_and_ends_as_the_container(terminal: tuple[int, int]) -> None:
    async def serve(peer: Peer) -> None:
        await peer.opened(4)
        name, _ = await anext(peer.received())
        assert name == "resize"
        machine.ends.set()
        peer.send("stdout", b"$ bye\r\n")
        peer.end(SUCCESS)

    with spdy_runtime(serve) as url:
        log = (LogLine(stream="stdout", at=AT, data=b"hello\r"),)
        machine = Machine(url, Container(name="main", image="i", stdin=True, tty=True), log)
        code, out, _, asked = ran(machine.script, "run", "-it", "busybox", given=terminal[1])
    assert (code, out) == (9, b"hello\r\n$ bye\r\n")
    assert [type(each) for each in asked] == [Run, Logs, Attach, Wait]


def test_keys_let_go_of_a_terminal_and_the_pod_runs_on(terminal: tuple[int, int]) -> None:
    async def serve(peer: Peer) -> None:
        await peer.opened(4)
        received = peer.received()
        await anext(received)  # its size: the terminal is raw
        os.write(terminal[0], b"\x10\x11")
        async for _ in received:
            pass

    with spdy_runtime(serve) as url:
        machine = Machine(url, Container(name="main", image="i", stdin=True, tty=True), phase="running")
        code, out, err, _ = ran(machine.script, "attach", "train", given=terminal[1])
    assert (code, out, err) == (0, b"", b"left train running\n")


def test_attaching_without_a_terminal_shows_what_comes_and_ends_as_the_container() -> None:
    log = (LogLine(stream="stderr", at=AT, data=b"late"),)
    machine = Machine("", Container(name="main", image="i"), log)
    machine.ends.set()
    code, out, err, asked = ran(machine.script, "attach", "train")
    assert (code, out, err) == (9, b"", b"late\n")
    assert Logs(name="uid-of-train", container="main", follow=True, tail=0) in asked
