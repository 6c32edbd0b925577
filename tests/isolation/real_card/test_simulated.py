"""The questions to a real card are asked whole on a simulated one: containers, answers, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from real_card import result
from real_card.result import Result
from support.isolated import until


def command(path: Path, rows: Sequence[str]) -> list[str]:
    flags = [f"--row={row}" for row in rows]
    return [sys.executable, "-P", "-m", "real_card", "--simulated", "h100", f"--out={path}", *flags]


def asked(path: Path, *rows: str) -> tuple[int, Result]:
    done = subprocess.run(command(path, rows), capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    return done.returncode, result.read(path)


def test_a_row_of_each_kind_is_answered_and_the_card_left_as_it_was(tmp_path: Path) -> None:
    rows = ["own-pid", "death", "green-context", "torch", "kernel-cost-free"]
    status, found = asked(tmp_path / "result.json", *rows)
    states = {each.row: (each.state, each.agrees) for each in found.answers}
    assert states.pop("torch")[0] in {"absent", "answered"}
    assert states == {
        "own-pid": ("answered", True),
        "death": ("answered", None),  # only a real card knows
        "green-context": ("answered", True),
        "kernel-cost-free": ("answered", None),
    }, found.answers
    assert (status, found.simulated, found.left_as_found) == (0, True, True)


def test_a_run_that_is_ended_leaves_what_was_answered_and_no_process(tmp_path: Path) -> None:
    path, mark = tmp_path / "result.json", f"STARTED_BY={tmp_path}"
    name, _, value = mark.partition("=")
    argv = command(path, ["own-pid", "past-context"])
    with subprocess.Popen(argv, env={**os.environ, name: value}, stdout=subprocess.DEVNULL) as process:
        until(lambda: any(said.startswith("flood") for said in _started(mark)))
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 130
    assert [each.row for each in result.read(path).answers] == ["own-pid"]
    assert _started(mark) == []


def _started(mark: str) -> list[str]:
    """The command lines, without folders, of processes that have the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().decode().split("\0")
                found.append(" ".join([Path(words[0]).name, *words[1:]]))
        except OSError:
            continue
    return found
