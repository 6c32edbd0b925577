"""All questions to a real card run on a simulated one: containers, answers, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from real_card import result
from real_card.result import Result
from support.isolated import until
from support.processes import started_with


def command(path: Path, rows: Sequence[str], *flags: str) -> list[str]:
    named = [f"--row={row}" for row in rows]
    return [sys.executable, "-P", "-m", "real_card", "--simulated", "h100", f"--out={path}", *named, *flags]


def asked(path: Path, rows: Sequence[str], *flags: str) -> tuple[int, Result, str]:
    done = subprocess.run(command(path, rows, *flags), capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    return done.returncode, result.read(path), done.stdout


def test_a_row_of_each_kind_is_answered_and_the_card_left_as_it_was(tmp_path: Path) -> None:
    rows = ["torch", "context-size", "death", "green-context", "kernel-cost-free", "conformance-memory"]
    status, found, said = asked(tmp_path / "result.json", rows)
    states = {each.row: (each.state, each.agrees) for each in found.answers}
    assert states.pop("torch")[0] in {"absent", "answered"}
    assert states == {
        "context-size": ("answered", True),
        "death": ("answered", None),  # only a real card knows
        "green-context": ("answered", True),
        "kernel-cost-free": ("answered", None),
        "conformance-memory": ("answered", True),
    }, "\n".join(each.found for each in found.answers if not each.agrees)
    (run,) = found.runs.values()
    assert (status, run.simulated, run.left_as_found) == (0, True, True)
    assert [line.split()[0] for line in said.splitlines()[:-1]] == [f"{number}/6" for number in range(1, 7)]


def test_a_run_goes_on_with_what_an_earlier_one_lacks(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    asked(first, ["abilities"])
    _, found, said = asked(second, ["abilities", "nvml-cost"], f"--missing={first}")
    assert "1/1 " in said
    assert len({each.run for each in found.answers}) == len(found.runs) == 2


def test_what_does_not_fit_into_the_minutes_is_skipped_and_says_why(tmp_path: Path) -> None:
    _, found, _ = asked(tmp_path / "result.json", ["abilities", "inference"], "--minutes=0.3")
    skipped = {each.row: each.found for each in found.answers if each.state == result.NO_TIME}
    assert "takes 16 s" in skipped["inference"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_a_run_that_is_ended_leaves_what_was_answered_and_no_process(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    path, mark = tmp_path / "result.json", f"STARTED_BY={tmp_path}"
    name, _, value = mark.partition("=")
    argv = command(path, ["past-context", "death"])
    with subprocess.Popen(argv, env={**os.environ, name: value}, stdout=subprocess.DEVNULL) as process:
        until(lambda: any(said.startswith("flood") for said in started_with(mark)))
        process.send_signal(number)
    assert process.returncode == status
    assert [each.row for each in result.read(path).answers] == ["death"]
    until(lambda: started_with(mark) == [])
