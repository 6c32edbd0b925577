"""A pause returns 0 only when no process of ours has the driver open, and its wait is bounded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from partage_cli.main import cli
from partage_cli.node.holders import Holder, holders
from partage_cli.node.rest import RestState, look, wait_until
from partage_cli.pauses import BY_HAND, pause, resume, said_pauses
from partage_plugins.api import CardHealth, HealthCause
from partage_plugins.api.places import PAUSE_FOLDER
from unit.cli.doctor.made import CARDS, Made

OURS, OTHER = Holder(7, "python", is_ours=True), Holder(9, "nvidia-persiste", is_ours=False)
PAUSED = CardHealth.degraded(HealthCause.PAUSED, "paused: by hand")
RESTING = tuple(card.being(PAUSED) for card in CARDS)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@pytest.fixture
def typed(made: Made) -> Callable[..., Result]:
    def typed(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--root", str(made.root), "node", *words], standalone_mode=False)

    return typed


def process(made: Made, pid: int, name: str, *argv: str, opened: str = "", maps: str = "") -> None:
    made.write(f"proc/{pid}/comm", f"{name}\n")
    made.write(f"proc/{pid}/cmdline", "\0".join(argv) + "\0")
    made.write(f"proc/{pid}/maps", maps)
    folder = made.root / f"proc/{pid}/fd"
    folder.mkdir()
    (folder / "0").symlink_to("/dev/null")
    if opened:
        (folder / "3").symlink_to(opened)


def test_asking_writes_one_readable_line_and_nothing_beside_it(made: Made) -> None:
    before = os.umask(0o077)
    try:
        pause(made.root, "driver 580")
    finally:
        os.umask(before)
    file = made.root / PAUSE_FOLDER / BY_HAND
    assert file.read_text() == "driver 580\n"
    assert file.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in file.parent.iterdir()] == [BY_HAND]
    assert [each.name for each in file.parent.parent.iterdir()] == ["pause"]


def test_asking_again_changes_the_reason_alone(made: Made) -> None:
    pause(made.root, "one")
    pause(made.root, "two")
    assert said_pauses(made.root) == ((BY_HAND, "two"),)


def test_a_disk_that_is_full_leaves_what_was_there(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    pause(made.root, "one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(OSError, match="No space left"):
        pause(made.root, "two")
    assert said_pauses(made.root) == ((BY_HAND, "one"),)
    assert [each.name for each in (made.root / PAUSE_FOLDER).parent.iterdir()] == ["pause"]


def test_taking_back_what_nobody_asked_is_no_error(made: Made) -> None:
    assert not resume(made.root)
    pause(made.root, "x")
    assert resume(made.root)
    assert said_pauses(made.root) == ()


def test_a_pause_of_others_is_left_alone(made: Made) -> None:
    made.write(f"{PAUSE_FOLDER}/driver-upgrade", "the operator\nmore\n")
    made.write(f"{PAUSE_FOLDER}/.new", "being written")
    pause(made.root, "x")
    resume(made.root)
    assert said_pauses(made.root) == (("driver-upgrade", "the operator"),)


@pytest.mark.parametrize(
    ("seen", "rests"),
    [
        (RestState(advertiser_runs=True, cards=2, resting=2, holders=(OTHER,)), True),
        (RestState(advertiser_runs=True, cards=2, resting=1, holders=()), False),
        (RestState(advertiser_runs=True, cards=2, resting=2, holders=(OURS,)), False),
        (RestState(advertiser_runs=False, cards=2, resting=0, holders=()), True),
        (RestState(advertiser_runs=False, cards=2, resting=0, holders=(OURS,)), False),
        (RestState(advertiser_runs=True, cards=0, resting=0, holders=()), True),
    ],
)
def test_a_node_rests_when_the_advertiser_says_so_and_nobody_of_ours_holds_it(seen: RestState, *, rests: bool) -> None:
    assert seen.rests is rests


def test_a_look_reads_lock_inventory_and_processes(made: Made) -> None:
    made.with_cards(RESTING[0], CARDS[1])
    process(made, 7, "python", "/usr/bin/python", "-m", "partage_advertiser", maps="7f00 /x/libnvidia-ml.so.1\n")
    with made.advertiser():
        assert look(made.root) == RestState(advertiser_runs=True, cards=2, resting=1, holders=(OURS,))
    assert not look(made.root).advertiser_runs


def test_a_health_that_only_begins_like_a_pause_is_no_rest(made: Made) -> None:
    alike = CardHealth.degraded(HealthCause.OTHER, "paused by a power cap")
    made.with_cards(CARDS[0].being(alike), replace(CARDS[1], health=str(alike)))
    assert look(made.root).resting == 0


def test_who_has_a_device_open_holds_the_driver_and_of_ours_also_who_has_the_library(made: Made) -> None:
    mapped = "7f00 /usr/lib/libnvidia-ml.so.580\n"
    process(made, 1, "init", "/sbin/init")
    process(made, 5, "train", "python", "train.py", opened="/dev/nvidia0")
    process(made, 6, "caps", "x", opened="/dev/nvidia-caps/nvidia-cap1")
    process(made, 7, "smi", "nvidia-smi", maps=mapped)
    process(made, 8, "adv", "/usr/bin/partage-advertiser", maps=mapped)
    process(made, 9, "adv", "/usr/bin/partage-advertiser")
    process(made, 10, "log", "tail", opened="/var/log/nvidia-installer.log")
    assert [(each.pid, each.is_ours) for each in holders(made.root)] == [(5, False), (6, False), (8, True)]


def test_a_process_that_ends_while_it_is_looked_at_holds_nothing(made: Made) -> None:
    (made.root / "proc/12").mkdir(parents=True)
    assert holders(made.root) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="others' processes are shown to root alone")
def test_a_real_process_with_a_device_open_is_found(tmp_path: Path) -> None:
    device = tmp_path / "dev/nvidia0"
    device.parent.mkdir()
    device.touch()
    code = "import sys; opened = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", code, str(device)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        assert [each.is_ours for each in holders(Path("/")) if each.pid == child.pid] == [False]
        child.kill()


def test_waiting_ends_with_what_was_waited_for_or_with_its_time() -> None:
    looks = [RestState(True, 2, 0, ()), RestState(True, 2, 1, ()), RestState(True, 2, 2, ())]
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def next_look() -> RestState:
        return looks[min(len(looks) - 1, round(now[0] / 10))]

    rested = wait_until(lambda seen: seen.rests, next_look, 30, clock=lambda: now[0], sleep=sleep)
    assert rested.rests
    assert now[0] <= 30
    now[0] = 0
    late = wait_until(lambda seen: seen.rests, next_look, 5, clock=lambda: now[0], sleep=sleep)
    assert not late.rests


def test_pause_without_an_advertiser_says_so_and_holds_for_the_next(made: Made, typed: Callable[..., Result]) -> None:
    done = typed("pause", "--reason", "driver 580")
    assert done.return_value == 0
    assert "no advertiser runs on this node; the pause will hold for the next one" in done.stderr
    assert said_pauses(made.root) == ((BY_HAND, "driver 580"),)


def test_pause_of_a_node_that_rests_already_is_done_at_once(made: Made, typed: Callable[..., Result]) -> None:
    with made.with_cards(*RESTING).advertiser():
        done = typed("pause")
    assert done.return_value == 0
    assert "2 of 2 cards paused; no process of partage holds the driver" in done.stderr


def test_pause_that_nobody_follows_is_a_failure_and_stays(made: Made, typed: Callable[..., Result]) -> None:
    with made.with_cards().advertiser():
        done = typed("pause", "--wait", "0.01")
    assert done.return_value == 1
    assert "the advertiser says that 0 of 2 cards are paused" in done.stderr
    assert said_pauses(made.root)


def test_others_that_hold_the_driver_are_named_and_are_no_failure(made: Made, typed: Callable[..., Result]) -> None:
    process(made, 9, "nvidia-persiste", "/usr/bin/nvidia-persistenced", opened="/dev/nvidiactl")
    with made.with_cards(*RESTING).advertiser():
        done = typed("pause")
    assert done.return_value == 0
    assert "others hold it: nvidia-persiste (process 9)" in done.stderr


def test_pause_that_does_not_wait_only_asks(made: Made, typed: Callable[..., Result]) -> None:
    with made.with_cards().advertiser():
        assert typed("pause", "--wait", "0").return_value == 0


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", "\x1b[2J", "x" * 201])
def test_a_reason_is_one_line_for_people(typed: Callable[..., Result], reason: str) -> None:
    done = typed("pause", "--reason", reason)
    assert done.exception is not None
    assert "one printable line" in str(done.exception)


def test_resume_waits_until_the_cards_are_looked_after(made: Made, typed: Callable[..., Result]) -> None:
    pause(made.root, "x")
    with made.with_cards(*RESTING).advertiser():
        late = typed("resume", "--wait", "0.01")
    assert (late.return_value, said_pauses(made.root)) == (1, ())
    with made.with_cards().advertiser():
        assert typed("resume").return_value == 0


def test_resume_tells_of_others_who_paused(made: Made, typed: Callable[..., Result]) -> None:
    made.write(f"{PAUSE_FOLDER}/driver-upgrade", "the operator upgrades")
    done = typed("resume")
    assert done.return_value == 0
    assert "still paused by driver-upgrade: the operator upgrades" in done.stderr
    assert "this node was not paused by hand" in done.stderr


def test_status_says_who_and_why(made: Made, typed: Callable[..., Result]) -> None:
    assert "not paused" in typed("status").stderr
    pause(made.root, "driver 580")
    made.write(f"{PAUSE_FOLDER}/x\x1b", "evil\x9b")
    with made.with_cards(*RESTING).advertiser():
        done = typed("status")
    assert done.stdout == "PAUSED BY   WHY\nby-hand     driver 580\nx?          evil?\n"
    assert "2 of 2 cards paused" in done.stderr
