"""The manager's client before managers that are away, silent, of another version, or hostile."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from partage_cli.machine.pods.pod import Container, EnvVar, Pod, Spec
from partage_cli.machine.wire import client
from partage_cli.machine.wire.client import Denied, Lines, ManagerAway, ManagerNonsense, NotAllowed, conversation
from partage_cli.machine.wire.messages import (
    MANAGER_SOCKET,
    MAX_ANSWER_BYTES,
    Done,
    DonePods,
    DoneRun,
    Logs,
    No,
    Progress,
    Ps,
    Question,
    Run,
    answer_line,
)
from partage_plugins.errors import PartageError, Refused
from support.scripted_manager import HELLO, Hangup, Said, pod, scripted


def told(root: Path, question: Question = Ps()) -> DonePods:  # noqa: B008  (it is frozen)
    with conversation(root) as (talk, _):
        return talk.told(question, DonePods)


def test_questions_follow_each_other_on_one_connection() -> None:
    with (
        scripted(lambda _: [DonePods(pods=(pod(),))]) as manager,
        conversation(manager.root) as (talk, hello),
    ):
        assert hello == HELLO
        assert [talk.told(question, DonePods).pods[0].name for question in (Ps(), Ps(all=True))] == ["train", "train"]
        assert manager.asked == [Ps(), Ps(all=True)]


def test_progress_is_told_before_the_last_answer() -> None:
    steps = [Progress(step="pull", done_bytes=1), Progress(step="start")]
    asked = Run(pod=Pod(spec=Spec(containers=(Container(name="main", image="i"),))))
    seen: list[Progress] = []
    with (
        scripted(lambda _: [*steps, DoneRun(pod=pod())]) as manager,
        conversation(manager.root) as (talk, _),
    ):
        assert talk.told(asked, DoneRun, progress=seen.append).pod == pod()
    assert seen == steps


def test_a_no_is_its_code_and_its_sentence_and_the_connection_goes_on() -> None:
    said: list[Said] = [No(code="unknown-name", why="there is no pod x"), DonePods(pods=())]
    with scripted(lambda _: [said.pop(0)]) as manager, conversation(manager.root) as (talk, _):
        with pytest.raises(Denied, match="there is no pod x") as denied:
            talk.told(Ps(names=("x",)), DonePods)
        assert denied.value.code == "unknown-name"
        assert talk.told(Ps(), DonePods) == DonePods(pods=())


def test_a_manager_with_too_many_connections_says_so_instead_of_hello() -> None:
    too_many = No(code="too-many", why="32 are connected already")
    with scripted(lambda _: [], too_many) as manager, pytest.raises(Denied, match="32 are connected"):
        told(manager.root)


def test_where_no_manager_listens_it_is_said_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(ManagerAway, match=r"no manager answers on .*: No such file.*; start it with: sudo partage up"):
        told(tmp_path)


def test_a_user_who_may_not_ask_reads_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_socket: socket.socket, _path: str) -> None:
        raise PermissionError(13, "Permission denied")

    with scripted(lambda _: []) as manager:
        monkeypatch.setattr(socket.socket, "connect", connect)
        os.chmod(manager.root / MANAGER_SOCKET, 0o660)  # noqa: PTH101
        os.chown(manager.root / MANAGER_SOCKET, 0, 1)
        with pytest.raises(NotAllowed, match="answers root and the group daemon alone"):
            told(manager.root)
        os.chmod(manager.root / MANAGER_SOCKET, 0o600)  # noqa: PTH101
        with pytest.raises(NotAllowed, match="answers root alone"):
            told(manager.root)


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        (b'{"is":"hello","v":2,"manager":"9","simulated":false}\n', "of one version"),
        (b"SSH-2.0-OpenSSH_9.2\n", "of one version"),
        (b"\xff\xfe\n", "of one version"),
        (answer_line(Done()), "did not begin as a manager does"),
        (b"[" * 100_000 + b"\n", "of one version"),
    ],
)
def test_what_is_no_manager_of_this_version_is_refused(hello: bytes, words: str) -> None:
    with scripted(lambda _: [], hello) as manager, pytest.raises(ManagerNonsense, match=words) as raised:
        told(manager.root)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1000


def test_half_a_line_is_waited_for_no_longer_than_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_S", 0.05)
    with scripted(lambda _: [], b'{"is":"he') as manager, pytest.raises(ManagerAway, match="did not answer within"):
        told(manager.root)


def test_a_manager_that_goes_away_within_a_line_is_away() -> None:
    def script(_: Question) -> Iterable[Said]:
        yield b'{"is":"pods","po'
        raise Hangup

    with scripted(script) as manager, pytest.raises(ManagerAway, match="it closed the connection"):
        told(manager.root)


def test_an_answer_to_another_question_is_nonsense() -> None:
    with scripted(lambda _: [Done()]) as manager, pytest.raises(ManagerNonsense, match="another question"):
        told(manager.root)


def test_a_line_without_an_end_is_given_up_before_it_fills_the_memory() -> None:
    gone = threading.Event()

    def script(_: Question) -> Iterable[Said]:
        try:
            while True:
                yield b"x" * (1 << 20)
        finally:
            gone.set()

    with scripted(script) as manager, pytest.raises(ManagerNonsense, match=f"more than {MAX_ANSWER_BYTES} bytes"):
        told(manager.root)
    assert gone.is_set()


def test_a_question_that_the_manager_would_not_read_is_not_sent() -> None:
    long = EnvVar(name="A", value="x" * (64 << 10))
    asked = Run(pod=Pod(spec=Spec(containers=(Container(name="main", image="i", env=(long,)),))))
    with scripted(lambda _: []) as manager:
        with pytest.raises(Refused, match="of 65536 that the manager reads"):
            told(manager.root, asked)
        assert manager.asked == []


def test_lines_are_the_same_however_they_are_cut() -> None:
    data = b"one\n\ntwo\nthree"
    for size in range(1, len(data) + 1):
        lines = Lines()
        found = [line for at in range(0, len(data), size) for line in lines.took(data[at : at + size])]
        assert found == [b"one", b"", b"two"], size


def test_whatever_is_said_is_an_answer_or_an_expected_error() -> None:
    whole = answer_line(DonePods(pods=(pod(),)))
    for cut in range(0, len(whole), 7):
        with scripted(lambda _, cut=cut: [whole[:cut] + b"}\n"]) as manager, pytest.raises(PartageError):  # type: ignore[misc]
            told(manager.root, Logs(name="x"))
