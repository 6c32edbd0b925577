"""Notifications to systemd over a real socket, and what happens without a listener."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_base.daemon.health import Systemd
from unit.daemon.processes import GUARD_S, RunningDaemon, run_to_end, write_script

pytestmark = pytest.mark.slow  # each test starts processes


@pytest.fixture(params=["path", "abstract"])
def supervisor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A socket as systemd creates it, and its name for the environment."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@partage-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0"))
        receiver.settimeout(GUARD_S)
        yield receiver, name


def _told(receiver: socket.socket) -> list[str]:
    return receiver.recv(4096).decode().split("\n")


def test_ready_is_told_after_the_start_and_stopping_before_the_stop(
    tmp_path: Path, supervisor: tuple[socket.socket, str]
) -> None:
    receiver, name = supervisor
    script = write_script(tmp_path, start="self.daemon.systemd.notify('STATUS=in start')")
    with RunningDaemon(script, NOTIFY_SOCKET=name) as daemon:
        assert _told(receiver) == ["STATUS=in start"]
        assert _told(receiver) == ["READY=1", f"MAINPID={daemon.pid}", "STATUS=running"]
        daemon.send(signal.SIGTERM)
        assert _told(receiver) == ["STOPPING=1", "STATUS=stopping"]
        assert daemon.end() == 0


def test_a_daemon_that_can_not_start_is_never_ready(tmp_path: Path, supervisor: tuple[socket.socket, str]) -> None:
    receiver, name = supervisor
    run_to_end(write_script(tmp_path, start="raise CannotStart('no')"), NOTIFY_SOCKET=name)
    assert _told(receiver) == ["STOPPING=1", "STATUS=stopping"]


def test_the_watchdog_is_fed_while_the_daemon_lives(tmp_path: Path, supervisor: tuple[socket.socket, str]) -> None:
    receiver, name = supervisor
    with RunningDaemon(write_script(tmp_path), NOTIFY_SOCKET=name, WATCHDOG_USEC="20000"):
        assert _told(receiver)[0] == "READY=1"
        assert [_told(receiver) for _ in range(3)] == [["WATCHDOG=1"]] * 3


def test_the_watchdog_is_not_fed_once_a_part_is_dead(tmp_path: Path, supervisor: tuple[socket.socket, str]) -> None:
    receiver, name = supervisor
    start = "self.daemon.health.dead('nvml', 'a call never returned')"
    alive = "self.daemon.systemd.notify('STATUS=alive again'); self.daemon.health.alive('nvml')"
    script = write_script(tmp_path, start=start, run=f"await asyncio.sleep(0.1); {alive}; await stopping.wait()")
    with RunningDaemon(script, NOTIFY_SOCKET=name, WATCHDOG_USEC="2000"):
        assert _told(receiver)[0] == "READY=1"
        assert _told(receiver) == ["STATUS=alive again"]
        assert _told(receiver) == ["WATCHDOG=1"]


@pytest.mark.parametrize("name", ["/nowhere/notify", "@partage-nobody", "x" * 500, "relative", "@"])
def test_a_supervisor_that_is_gone_costs_nothing(tmp_path: Path, name: str) -> None:
    with RunningDaemon(write_script(tmp_path), NOTIFY_SOCKET=name, WATCHDOG_USEC="1000") as daemon:
        daemon.until("ready")
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0


def test_a_supervisor_that_no_longer_reads_costs_nothing(tmp_path: Path) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name)
        systemd = Systemd({"NOTIFY_SOCKET": name})
        answers = {systemd.notify("x" * 4096)}
        while False not in answers:
            answers.add(systemd.notify("x" * 4096))
        assert answers == {True, False}


def test_a_message_is_one_line_whatever_is_in_it(tmp_path: Path) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name)
        assert Systemd({"NOTIFY_SOCKET": name}).notify("STATUS=a\nREADY=1", "STATUS=\udcff")
        assert receiver.recv(4096) == b"STATUS=a READY=1\nSTATUS=?"


@pytest.mark.parametrize(
    ("environment", "every_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "٣"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_in_its_time_and_only_if_it_watches_us(
    environment: dict[str, str], every_s: float | None
) -> None:
    assert Systemd(environment).watchdog_s == every_s
