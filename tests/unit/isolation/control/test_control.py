"""Requests and answers cross the socket as one line with any content; what is neither gives an error that says so.

A client of the broker gets its answer, or one sentence that says what to do, and never waits for long.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.wire.client import BrokerAway, BrokerClient, MalformedAnswer
from partage_isolation.wire.messages import (
    END,
    MAX_ANSWER_BYTES,
    MAX_QUESTION_BYTES,
    Answer,
    BrokerReport,
    Enter,
    Entered,
    GetReport,
    LimitsSet,
    Prepare,
    Question,
    Rejection,
    Release,
    Released,
    SetLimits,
    answer_line,
    question_line,
    read_answer,
    read_question,
)
from partage_plugins.api import CardId, ContainerKey, ContainerName, GpuGrant
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES, MAX_CARDS
from partage_plugins.api.places import BROKER_SOCKET
from partage_plugins.errors import DecodeError
from support.broker import CARD, FakeBroker, container, held, pod, prepared, told
from support.sockets import listening

KEY = ContainerKey("0" * 32)


def prepare(cards: int = 1) -> Prepare:
    grants = tuple(
        GpuGrant(card=CardId(f"MIG-{'5a1e3c8e' * 4}-{index}"), share_milli=0, limit_milli=1000, memory_bytes=1 << 62)
        for index in range(cards)
    )
    return Prepare(key=KEY, pod=pod(), container=ContainerName("main"), gen=1, grants=grants)


@pytest.mark.parametrize(
    "question",
    [
        prepare(),
        SetLimits(key=KEY, card=CARD, memory_bytes=None),
        Release(key=KEY),
        Enter(key=KEY, container="1a" * 32, pid=7),
        GetReport(),
    ],
)
def test_a_question_is_one_line_and_is_read_as_it_was(question: Question) -> None:
    line = question_line(question)
    assert line.count(END) == 1
    assert line.endswith(END)
    assert read_question(line) == question


@given(st.text(min_size=1, max_size=100))
def test_a_sentence_with_any_text_stays_one_line(sentence: str) -> None:
    line = answer_line(Rejection(why=sentence))
    assert line.index(END) == len(line) - 1
    assert read_answer(line) == Rejection(why=sentence)


def test_answers_are_read_as_they_were() -> None:
    answers: list[Answer] = [
        prepared(prepare()),
        LimitsSet(memory_bytes=1, charged_bytes=2),
        Released(is_over=True),
        Entered(),
        told(container(pod(), held())),
    ]
    assert [read_answer(answer_line(answer)) for answer in answers] == answers


def test_the_largest_question_fits() -> None:
    assert MAX_QUESTION_BYTES >= MAX_ANNOTATION_BYTES >= len(question_line(prepare(MAX_CARDS)))


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        (b"", "JSON"),
        (b"tell\n", "JSON"),
        (b"{}\n", "an object with the field `ask`"),
        (b'{"ask":"stop"}\n', "Invalid value 'stop'"),
        (b'{"ask":"prepare","key":"main"}\n', "32 lower-case hex digits"),
        (b'{"ask":"set-limits","key":"%b","card":"GPU-0","memory_bytes":-1}\n' % KEY.encode(), "an integer from 0"),
        (b'{"ask":"set-limits","key":"%b","card":"all cards","memory_bytes":1}\n' % KEY.encode(), "a card id"),
    ],
)
def test_what_is_no_question_is_refused_with_what_is_allowed(line: bytes, allowed: str) -> None:
    with pytest.raises(DecodeError, match=allowed):
        read_question(line)


@given(
    st.one_of(st.binary(max_size=200), st.recursive(st.none() | st.text(max_size=9), st.lists).map(msgspec.json.encode))
)
def test_any_bytes_are_a_question_or_one_error(line: bytes) -> None:
    for read in (read_question, read_answer):
        with contextlib.suppress(DecodeError):
            read(line)


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert read_question(b'{"ask":"tell","since":"yesterday"}') == GetReport()
    assert read_answer(b'{"answer":"told","broker":"9.0.0","weather":"fine"}') == BrokerReport(broker="9.0.0")


# ---- The client ------------------------------------------------------------------------------------------------------


PREPARE = Prepare(
    key=KEY,
    pod=pod(),
    container=ContainerName("main"),
    gen=1,
    grants=(GpuGrant(card=CARD, share_milli=0, limit_milli=1000, memory_bytes=1 << 30),),
)


@pytest.fixture
def root() -> Iterator[Path]:
    with TemporaryDirectory() as folder:  # a socket's path must be short
        yield Path(folder)


def test_each_question_gets_its_answer(root: Path) -> None:
    client, how = BrokerClient(root), told(container(pod(), held()))
    with FakeBroker(root) as broker:
        assert client.prepare(PREPARE) == prepared(PREPARE)
        broker.answering = how
        assert client.tell() == how
        broker.answering = LimitsSet(memory_bytes=1, charged_bytes=2)
        assert client.set_limits(SetLimits(key=KEY, card=CARD, memory_bytes=1)).charged_bytes == 2
    assert broker.asked[0] == PREPARE


def test_a_broker_that_was_restarted_is_found_again(root: Path) -> None:
    client = BrokerClient(root)
    for _ in range(2):
        with FakeBroker(root):
            client.prepare(PREPARE)
        with pytest.raises(BrokerAway, match=r"Connection refused; is partage-broker running\?"):
            client.prepare(PREPARE)


def test_where_no_broker_ever_was_the_sentence_names_the_socket(root: Path) -> None:
    with pytest.raises(BrokerAway) as away:
        BrokerClient(root).tell()
    path = root / BROKER_SOCKET
    assert str(away.value) == f"no broker answers at {path}: No such file or directory; is partage-broker running?"


def test_a_broker_that_dies_while_it_is_asked_is_away(root: Path) -> None:
    with FakeBroker(root, b""), pytest.raises(BrokerAway, match="closed the connection without an answer"):
        BrokerClient(root).tell()


def test_a_broker_that_hangs_costs_no_more_than_the_deadline(root: Path) -> None:
    with (
        listening(root / BROKER_SOCKET),
        pytest.raises(BrokerAway, match=r"did not answer within 0\.05 s; see partage-broker's log"),
    ):
        BrokerClient(root, deadline_s=0.05).tell()


def test_an_answer_that_trickles_does_not_move_the_deadline(root: Path) -> None:
    code = (
        "import socket, sys, time\n"
        "server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(); print(flush=True)\n"
        "peer, _ = server.accept()\n"
        "while True: peer.send(b'x'); time.sleep(0.02)\n"
    )
    (root / BROKER_SOCKET).parent.mkdir(parents=True)
    argv = [sys.executable, "-c", code, str(root / BROKER_SOCKET)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as trickling:
        assert trickling.stdout is not None
        trickling.stdout.readline()
        with pytest.raises(BrokerAway, match="did not answer within"):
            BrokerClient(root, deadline_s=0.1).tell()
        trickling.kill()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"hello\n", "answer of the broker: .*malformed.*of one version"),
        (b'{"answer":"maybe"}\n', "answer of the broker: .*maybe"),
        (b'{"answer":"told","broker":"9"}\n', "answered another question than was asked"),
    ],
)
def test_an_answer_that_is_none_is_said_to_be_nonsense(root: Path, answer: bytes, why: str) -> None:
    with FakeBroker(root, answer), pytest.raises(MalformedAnswer, match=why):
        BrokerClient(root).prepare(PREPARE)


def test_an_answer_without_an_end_is_not_read_for_ever(root: Path) -> None:
    with FakeBroker(root, b"x" * (MAX_ANSWER_BYTES + 1)), pytest.raises(BrokerAway, match="is longer than"):
        BrokerClient(root, deadline_s=20).tell()


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    root = tmp_path / ("a" * 100) / ("b" * 100)
    with FakeBroker(root):
        assert BrokerClient(root).prepare(PREPARE) == prepared(PREPARE)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_who_may_not_connect_is_told_to_be_root(root: Path) -> None:
    root.chmod(0o755)
    code = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path; from partage_isolation.wire.client import BrokerClient\n"
        "os.setuid(65534); BrokerClient(Path(sys.argv[1])).tell()\n"
    )
    with FakeBroker(root) as broker:
        broker.path.chmod(0o600)
        ran = subprocess.run([sys.executable, "-c", code, root, *sys.path], capture_output=True, text=True, check=False)
    assert re.search(r"OnlyForRoot: the broker at .* answers root alone; ask as root", ran.stderr)


def test_asking_needs_no_event_loop_and_no_arrays() -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import partage_isolation.wire.client, partage_isolation.plugin\n"
        "print(*({'asyncio', 'numpy', 'structlog', 'ctypes'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code, *sys.path], capture_output=True, text=True, check=True)
    assert not ran.stdout.strip()
