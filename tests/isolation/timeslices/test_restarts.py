"""The broker may die at any moment, and may not be able to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isolation.timeslices.members import Member
from partage_isolation.library.pages import PAGE, install_page
from partage_isolation.timeslices.line import LineState
from partage_isolation.wire.packets import Result
from rig.patience import patience_s
from support.isolated import Isolated, until

pytestmark = pytest.mark.slow


def test_a_lease_runs_out_and_the_next_broker_has_a_page_of_its_own(place: Isolated) -> None:
    container, rival = place.prepare(share=500), place.prepare(share=500)
    with Member(container.socket) as one, Member(rival.socket) as other:
        one.join()
        other.join()
        one.wait_open()
        other.want()
        until(lambda: one.line().state is LineState.TIMESLICE or not one.line().is_open)
        place.broker.kill()
        one.wait_over(one.line())
        old = one.line()
        place.broker.start()
        assert one.line() == old  # nobody writes the old page any more
        assert one.resume() == Result.OK
        assert one.line().state is LineState.CLOSED
        assert one.join() == Result.OK
        assert one.line().epoch == one.terms.epoch
        assert one.wait_open().is_open


def test_epochs_of_the_last_broker_say_nothing_to_the_next(place: Isolated) -> None:
    """Each begins at random: messages in transit are old, except with probability 1 in 131 072."""
    with Member(place.prepare(share=500).socket) as one:
        epochs = set[int]()
        for _ in range(3):
            one.join()
            one.wait_open()
            epochs.add(one.line().epoch)
            place.broker.restart()
            assert one.resume() == Result.OK
        assert len(epochs) > 1


# ---- What it needs to start ------------------------------------------------------------------------------------------


def started(root: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "partage_isolation", f"--root={root}", "--library-folder=/lib", *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=patience_s(), check=False)


def test_without_its_writer_of_lines_it_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    ended = started(tmp_path, "--log-format=text")
    assert ended.returncode == 1
    (line,) = (line for line in ended.stderr.splitlines() if PAGE in line)
    assert "install it with `partage-broker --install-library`" in line
    assert "Traceback" not in ended.stderr


def test_a_check_tells_it_with_everything_else_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    lines = started(tmp_path, "--check").stderr.splitlines()
    assert any("no preload library is installed" in line for line in lines)
    assert any(PAGE in line for line in lines)
    install_page(tmp_path / "lib")
    assert not any(PAGE in line for line in started(tmp_path, "--check").stderr.splitlines())
