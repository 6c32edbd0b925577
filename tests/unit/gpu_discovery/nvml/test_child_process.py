"""For any behaviour of the child, and if it can't be started, the parent gets one line and leaks nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from msgspec.json import encode

from partage_gpu.nvml import driver as driver_module
from partage_gpu.nvml import process
from partage_gpu.nvml.driver import Driver
from partage_gpu.nvml.facts import NodeFacts, Trouble
from support.procfs import lives
from unit.gpu_discovery.nvml import made

pytestmark = pytest.mark.slow  # each starts a process

SAY = """
import os, socket, sys, time
parent = socket.socket(fileno=0)
FACTS = b'{"type":"looked","facts":{"type":"facts","driver":"1","cuda":"2","cards":[]}}'
READY = b'{"type":"ready"}'
"""
ANSWER = SAY + "parent.send(READY)\nwhile parent.recv(100): parent.send(FACTS)\n"


class Made(Protocol):
    def __call__(self, script: str, deadline_s: float = ...) -> Driver: ...


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """A driver whose child is a script."""
    drivers: list[Driver] = []

    def begin(script: str, deadline_s: float = 30.0) -> Driver:
        monkeypatch.setattr(process, "COMMAND", (sys.executable, "-S", "-c", script))
        drivers.append(Driver(tmp_path, wake=lambda: None, look_deadline_s=deadline_s))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.close()


def trouble(driver: Driver) -> Trouble:
    look = driver.look()
    assert isinstance(look, Trouble)
    return look


@pytest.mark.parametrize(
    "said", ["b'nonsense'", "b'{}'", "b'[' * 150000", "FACTS[:-1]", "FACTS * 2", "os.urandom(90000)", "b' ' * 200000"]
)
def test_what_is_no_message_ends_the_child(child: Made, said: str) -> None:
    room = "parent.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)"
    driver = child(SAY + f"{room}; parent.recv(100); parent.send({said}); time.sleep(3600)")
    look = trouble(driver)
    assert look.kind == "failed"
    assert "is no message" in look.sentence
    assert len(look.sentence) < 300


def test_the_last_words_of_a_child_that_does_not_hear_the_question_are_heard(child: Made) -> None:
    words = b'{"type":"ended","trouble":{"type":"trouble","kind":"mismatch","sentence":"two versions"}}'
    script = f"import select\nselect.select([parent], [], [])\nparent.send({words!r})\nos._exit(0)\n"
    assert trouble(child(SAY + script)) == Trouble(kind="mismatch", sentence="two versions")


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("raise SystemExit(7)", "exited with 7"),
        ("import os; os.abort()", "was killed by SIGABRT"),
        (SAY + "os.close(0); time.sleep(3600)", "was killed by SIGKILL"),
    ],
)
def test_a_child_that_ends_says_how(child: Made, script: str, end: str) -> None:
    driver = child(script)
    assert trouble(driver).sentence.endswith(end)
    assert driver.pid is None


def test_what_the_child_prints_becomes_lines_of_our_log(child: Made, caplog: pytest.LogCaptureFixture) -> None:
    script = "import sys; sys.stderr.write('one\\ntwo \\x1b[31m\\n' + 'x' * 100000 + '\\nlast'); sys.exit(3)"
    trouble(child(script))
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.endswith("queries the driver: one") for line in lines)
    assert any("two \\x1b" in line for line in lines)
    assert any(line.endswith("queries the driver: last") for line in lines)
    assert all(len(line) < 600 for line in lines)


def test_all_that_it_wrote_before_it_closed_its_socket_is_heard(child: Made, caplog: pytest.LogCaptureFixture) -> None:
    trouble(child(SAY + "os.write(2, b'x' * 60000 + b'\\nlast'); os.close(0); time.sleep(3600)"))
    assert caplog.messages[-1].endswith("queries the driver: last")


def test_a_child_that_says_much_and_answers_is_heard(child: Made) -> None:
    flood = 'parent.send(READY)\nparent.recv(100)\nfor _ in range(5000): parent.send(b\'{"type":"changed"}\')\n'
    driver = child(SAY + flood + "parent.send(FACTS)\nwhile parent.recv(100): parent.send(FACTS)\n")
    assert isinstance(driver.look(), NodeFacts)


def test_more_xids_than_anyone_asks_for_are_not_kept(child: Made) -> None:
    report = b'{"type":"reported","xid":{"uuid":"a","number":%d}}'
    script = (
        f"parent.recv(100)\nfor n in range(3000): parent.send({report!r} % n)\nparent.send(FACTS)\nparent.recv(100)"
    )
    driver = child(SAY + script)
    driver.look()
    assert [one.number for one in driver.xids()] == list(range(2000, 3000))


def test_a_program_that_is_not_there_is_one_line(child: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = child("")
    monkeypatch.setattr(process, "COMMAND", ("/there/is/no/python",))
    assert "cannot start the process" in trouble(driver).sentence


def test_no_process_to_be_had_is_one_line_and_then_over(child: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = child(ANSWER)

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        assert "temporarily unavailable" in trouble(driver).sentence
    assert isinstance(driver.look(), NodeFacts)


def test_no_thread_to_be_had_is_one_line_and_leaves_no_process(child: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, pids = child(ANSWER), list[int]()
    popen: Any = subprocess.Popen

    def noted(*arguments: object, **named: object) -> object:
        started: Any = popen(*arguments, **named)
        pids.append(started.pid)
        return started

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", noted)
        patch.setattr(threading.Thread, "start", refuse)
        assert "can't start new thread" in trouble(driver).sentence
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_silent_child_that_was_ready_is_killed(child: Made) -> None:
    driver = child(SAY + "parent.send(READY)\ntime.sleep(3600)", 1.0)
    deadline = time.monotonic() + 60
    while "no call returned" not in trouble(driver).sentence:
        assert time.monotonic() < deadline
    assert driver.pid is None


def test_a_node_with_a_silent_card_is_looked_at_by_a_new_child_now_and_then(
    child: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVML finds a card that was reset only when it is opened again."""
    known = ANSWER.replace('"cards":[]', '"cards":[' + encode(made.card("a")).decode() + "]")
    driver = child(known)
    driver.look()
    driver.let_go()
    silent = ANSWER.replace('"cards":[]', '"cards":[],"silent":[{"index":0,"fault":"GPU is lost (15)"}]')
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-S", "-c", silent))
    look = driver.look()
    assert isinstance(look, NodeFacts)
    assert [one.uuid for one in look.cards] == ["a"]
    first = driver.pid
    assert isinstance(driver.look(), NodeFacts)
    assert driver.pid == first
    monkeypatch.setattr(driver_module, "_ANEW_S", 0.0)
    assert isinstance(driver.look(), NodeFacts)
    assert driver.pid != first


def test_looks_let_gos_and_deaths_all_at_once_leave_nothing(child: Made) -> None:
    driver, failures = child(ANSWER, 5.0), list[BaseException]()

    def repeat(do: Callable[[], object]) -> None:
        try:
            for _ in range(25):
                do()
        except BaseException as error:  # noqa: BLE001  whatever it is, the test shall show it
            failures.append(error)

    def kill() -> None:
        pid = driver.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.sched_yield()

    threads = [threading.Thread(target=repeat, args=(do,)) for do in (driver.look, driver.samples, driver.let_go, kill)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    driver.let_go()
    assert isinstance(driver.look(), NodeFacts)


def test_what_it_compiles_is_kept_where_we_keep_it(
    child: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    tells = "import json; FACTS = FACTS.replace(b'\"1\"', json.dumps(sys.pycache_prefix).encode())\n"
    looked = child(SAY + tells + ANSWER.removeprefix(SAY)).look()
    assert isinstance(looked, NodeFacts)
    assert looked.driver == str(tmp_path / "compiled")


def test_what_the_child_started_ends_with_it(child: Made, tmp_path: Path) -> None:
    script = f"""
if os.fork() == 0:
    os.close(0)
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    time.sleep(3600)
parent.send(READY)
while parent.recv(100):
    while not os.path.exists({str(tmp_path / "pid")!r}) or not open({str(tmp_path / "pid")!r}).read(): pass
    parent.send(FACTS)
"""
    driver = child(SAY + script)
    driver.look()
    pid = int((tmp_path / "pid").read_text())
    driver.let_go()
    deadline = time.monotonic() + 60
    while lives(pid):
        assert time.monotonic() < deadline
        os.sched_yield()
