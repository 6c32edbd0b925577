"""At every moment a process listens at the path, through restarts and crashes."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from partage_base.daemon.errors import CannotListen
from partage_crishim.listener import Listener, listen

GIVEN = """
import os, socket, sys
from pathlib import Path
from partage_crishim.listener import listen
os.dup2(int(sys.argv[1]), 3)
listener = listen(Path("/nowhere/x.sock"), {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})
connection = None
while connection is None:
    try:
        connection, _ = listener.socket.accept()
    except BlockingIOError:
        pass
connection.sendall(b"hello")
listener.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run/crishim.sock"


@pytest.fixture
def first(path: Path) -> Iterator[Listener]:
    listener = listen(path, {})
    yield listener
    listener.close()


def accepts(listener: Listener) -> bool:
    """Whether a connection is pending on this listener."""
    try:
        connection, _ = listener.socket.accept()
    except BlockingIOError:
        return False
    connection.close()
    return True


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_it_is_its_owners_alone(first: Listener, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    connect(path)
    assert accepts(first)


def test_the_next_one_takes_over_and_the_last_one_leaves_the_path_alone(first: Listener, path: Path) -> None:
    second = listen(path, {})
    assert first.is_replaced
    assert not second.is_replaced
    connect(path)
    assert accepts(second)
    assert not accepts(first)
    first.close()
    connect(path)
    assert accepts(second)
    second.close()
    assert not path.exists()


def test_what_a_killed_one_left_is_replaced(path: Path) -> None:
    listen(path, {}).socket.close()
    aside = path.with_name(f".{path.name}.4194999")
    with socket.socket(socket.AF_UNIX) as remains:
        remains.bind(str(aside))
    with closing(listen(path, {})) as listener:
        connect(path)
        assert accepts(listener)
        assert not aside.exists()


def test_clients_never_find_the_path_empty(first: Listener, path: Path) -> None:
    failed: list[OSError] = []
    done = threading.Event()

    def knock() -> None:
        while not done.is_set():
            with socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                try:
                    client.connect(str(path))
                except BlockingIOError:  # the backlog is full
                    continue
                except OSError as error:
                    failed.append(error)

    knocking = threading.Thread(target=knock)
    knocking.start()
    listeners = [first]
    for _ in range(50):
        listeners.append(listen(path, {}))
        while accepts(listeners[-2]):
            pass
        if len(listeners) > 2:
            listeners.pop(0).close()
    done.set()
    knocking.join()
    for listener in listeners:
        listener.close()
    assert failed == []


def test_a_file_in_its_place_is_kept_and_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(CannotListen, match=r"crishim\.sock: something that is no socket is there; remove it"):
        listen(path, {})
    assert path.read_text() == "mine"


def test_a_path_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(CannotListen, match=r"cannot listen on .*: AF_UNIX path too long"):
        listen(tmp_path / ("x" * 120), {})


def test_a_socket_of_systemd_is_taken() -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("\0partage-test-" + str(os.getpid()))
        server.listen()
        argv = [sys.executable, "-c", GIVEN, str(server.fileno())]
        with subprocess.Popen(argv, pass_fds=[server.fileno()]) as child:
            client.connect(server.getsockname())
            assert client.recv(5) == b"hello"
        assert child.returncode == 0


def test_several_sockets_of_systemd_are_a_mistake_of_its_unit_and_stop_nothing(path: Path) -> None:
    with capture_logs() as logs, closing(listen(path, {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2"})) as listener:
        assert listener.path == path
    assert logs[0]["why"] == "systemd gave 2 sockets; crishim's unit must have one"


def test_sockets_of_systemd_for_another_process_are_not_ours(path: Path) -> None:
    with closing(listen(path, {"LISTEN_PID": "1", "LISTEN_FDS": "1"})) as listener:
        assert listener.path == path
