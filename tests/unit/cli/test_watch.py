"""On a terminal a waiting command says for what, and `--watch` redraws a table until `q`."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rig.client.wait import until
from unit.cli.doctor.made import Made
from unit.cli.program import PARTAGE, environment, partage

pytestmark = pytest.mark.slow  # each test starts a process

WAITS: Final = """
import sys
from partage_cli import progress
progress._AFTER_S = 0.01
with progress.waiting("asking everybody"):
    with progress.waiting("within"), progress.silent():
        pass
    sys.stdin.readline()
    progress.now("asking the rest")
    sys.stdin.readline()
    progress.tell("one has answered")
"""


class Screen:
    """A process on a terminal of its own, and its output."""

    def __init__(self, *argv: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(COLUMNS="400")
        )
        os.close(theirs)
        self.seen = ""

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, found: Callable[[str], object]) -> None:
        """Waits until the output satisfies `found`."""

        def why_not() -> str | None:
            if not found(self.seen) and select.select([self._ours], [], [], 0.1)[0]:
                self.seen += self._read()
            return None if found(self.seen) else repr(self.seen[-2000:])

        until("it is drawn", why_not, every_s=0)

    def end(self) -> int:
        """Reads the output to the end and returns the exit code."""
        while piece := self._read():
            self.seen += piece
        os.close(self._ours)
        return self.process.wait()

    def _read(self) -> str:
        try:
            return os.read(self._ours, 1 << 16).decode()
        except OSError:  # the other end is closed
            return ""


def test_a_long_wait_says_for_what_and_leaves_nothing_behind() -> None:
    screen = Screen(sys.executable, "-c", WAITS)
    screen.until(lambda seen: "asking everybody … " in seen)
    screen.press("\n")
    screen.until(lambda seen: "asking the rest … " in seen)
    screen.press("\n")
    assert screen.end() == 0
    assert "within" not in screen.seen
    assert screen.seen.endswith(("one has answered\r\n", "\r\x1b[K"))


def test_without_a_terminal_a_wait_says_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITS], input="\n\n", env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "one has answered\n")


def test_a_table_is_drawn_again_with_what_has_changed_until_q(tmp_path: Path) -> None:
    made = Made(tmp_path).with_cards()
    screen = Screen(*PARTAGE, "--root", str(tmp_path), "nodes", "--local", "--watch", "--node", "gpu-7")
    screen.until(lambda seen: "gpu-7" in seen)
    made.write("run/partage/inventory.json", "{")
    screen.until(lambda seen: "cannot be read" in seen)
    (tmp_path / "run/partage/inventory.json").unlink()
    screen.until(lambda seen: "inventory.json is not" in seen)
    screen.press("q")
    assert screen.end() == 0


def test_what_can_not_be_drawn_is_wrong_usage_or_a_failure(tmp_path: Path) -> None:
    done = partage(tmp_path, "nodes", "--local", "--watch")
    assert (done.returncode, "--watch draws on a terminal" in done.stderr) == (2, True)
    done = partage(tmp_path, "nodes", "--local", "--watch", "-o", "json")
    assert (done.returncode, "leave -o and --wait out" in done.stderr) == (2, True)
    done = partage(tmp_path, "top", "--cluster", "--watch", "-o", "json")
    assert (done.returncode, "leave -o and --wait out" in done.stderr) == (2, True)
    screen = Screen(*PARTAGE, "--root", str(tmp_path), "nodes", "--local", "--watch")
    assert screen.end() == 1
    assert "does partage-advertiser run on this node?" in screen.seen
