"""People see that work goes on, on a terminal and in a log."""

from __future__ import annotations

import io
import time

import pytest

from rig.building.telling import Lines, Terminal, spent


class Clock:
    """Time as the test has it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_a_log_gets_a_status_every_thirty_seconds(clock: Clock) -> None:
    said: list[str] = []
    teller = Lines(said.append)
    teller.line("building")
    for second in range(1, 91):
        clock.now = 100.0 + second
        teller.status(f"{second} s")
    assert said == ["building", "30 s", "60 s", "90 s"]


def test_a_terminal_redraws_one_line_that_a_lasting_one_replaces(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    teller = Terminal(stream)
    teller.status("a status that is wider than that")
    teller.status("too early")
    clock.now += 1
    teller.status("in time")
    teller.line("done")
    assert stream.getvalue() == "\r\033[Ka status that is wi\r\033[Kin time\r\033[Kdone\n"


def test_durations_are_said_as_people_say_them() -> None:
    assert [spent(0.4), spent(59.9), spent(60), spent(754)] == ["0 s", "59 s", "1 min 00 s", "12 min 34 s"]
