"""The rollback script, run by real shells with a recorder in systemctl's place."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from partage_cli.installation.versions.version_back import Course, script
from rig.patience import patience_s

SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}
BROKER, CRISHIM, SOCKET = "partage-broker.service", "partage-crishim.service", "partage-crishim.socket"


@dataclass(frozen=True)
class Node:
    root: Path
    shell: tuple[str, ...]

    def run(self, who: str, **variables: str) -> int:
        argv = (*self.shell, str(self.root / "var/lib/partage/node/version-back"), who)
        environment = {"PATH": os.environ["PATH"], **variables}
        return subprocess.run(argv, env=environment, check=False, timeout=patience_s()).returncode

    def fails(self, who: str, times: int = 1, status: str = "1") -> None:
        for _ in range(times):
            self.run(who, SERVICE_RESULT="exit-code", EXIT_STATUS=status)

    @property
    def in_force(self) -> str:
        return str((self.root / "opt/partage/current").readlink())

    @property
    def asked(self) -> list[str]:
        """The commands that systemd received."""
        told = self.root / "told"
        return told.read_text().splitlines() if told.exists() else []

    @property
    def is_on_trial(self) -> bool:
        return (self.root / "var/lib/partage/node/version-back").exists()


@pytest.fixture(params=[name for name, argv in SHELLS.items() if shutil.which(argv[0])])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    root = tmp_path / "a node"
    for folder in ("opt/partage/1.0-g1", "opt/partage/1.1-g2", "etc/systemd/system", "var/lib/partage/node", "run"):
        (root / folder).mkdir(parents=True)
    (root / "opt/partage/current").symlink_to("1.1-g2")
    (root / "opt/partage/.before").symlink_to("1.0-g1")
    (root / "etc/systemd/system" / CRISHIM).write_text("new")
    (root / "etc/systemd/system" / f".{CRISHIM}.before").write_text("old")
    (root / "etc/systemd/system" / BROKER).write_text("the same")
    recorder = tmp_path / "systemctl"
    recorder.write_text(f'#!/bin/sh\necho "$@" >>"{root}/told"\n')
    recorder.chmod(0o755)
    course = Course("1.0-g1", "1.1-g2", (BROKER, CRISHIM))
    text = script(course, (BROKER, SOCKET, CRISHIM), systemctl=(str(recorder),), root=str(root))
    (root / "var/lib/partage/node/version-back").write_text(text)
    return Node(root, SHELLS[request.param])


def test_two_failures_change_nothing_and_the_third_brings_the_version_before_back(node: Node) -> None:
    node.fails("partage-crishim", 2)
    assert (node.in_force, node.is_on_trial, node.asked) == ("1.1-g2", True, [])
    node.fails("partage-crishim")
    assert (node.in_force, node.is_on_trial) == ("1.0-g1", False)
    assert (node.root / "etc/systemd/system" / CRISHIM).read_text() == "old"
    assert (node.root / "etc/systemd/system" / BROKER).read_text() == "the same"
    assert node.asked == [
        "--no-block daemon-reload",
        f"--no-block try-restart {BROKER}",
        f"--no-block start {CRISHIM}",
    ]
    said = (node.root / "var/lib/partage/node/went-back").read_text()
    assert said == "1.1-g2 does not start: partage-crishim failed; 1.0-g1 is in force again\n"


def test_failures_of_two_daemons_are_not_added_up(node: Node) -> None:
    node.fails("partage-crishim", 2)
    node.fails("partage-broker", 2)
    assert node.in_force == "1.1-g2"


def test_a_stop_that_was_asked_for_is_no_failure(node: Node) -> None:
    for _ in range(5):
        assert node.run("partage-broker", SERVICE_RESULT="success", EXIT_STATUS="0") == 0
    assert node.in_force == "1.1-g2"


def test_failures_of_long_ago_do_not_count(node: Node) -> None:
    """They are counted by a clock that began at this boot."""
    failures = node.root / "run/partage/trial"
    failures.mkdir(parents=True)
    now = int(float(Path("/proc/uptime").read_text().split()[0]))
    (failures / "partage-crishim").write_text(f"{now - 400}\n{now - 350}\n{now - 310}\n")
    node.fails("partage-crishim", 2)
    assert node.in_force == "1.1-g2"


def test_a_daemon_that_refuses_its_configuration_is_not_waited_for(node: Node) -> None:
    """Systemd does not restart it."""
    node.fails("partage-broker", status="78")
    assert node.in_force == "1.0-g1"
    assert node.asked[-1] == f"--no-block start {BROKER}"


def test_where_failures_cannot_be_counted_one_is_enough(node: Node) -> None:
    (node.root / "run/partage").write_text("no folder")
    node.fails("partage-crishim")
    assert node.in_force == "1.0-g1"


def test_it_acts_at_once_when_told_and_leaves_the_starting_to_the_caller(node: Node) -> None:
    assert node.run("now") == 0
    assert (node.in_force, node.is_on_trial, node.asked) == ("1.0-g1", False, [])


@pytest.mark.parametrize("done", ["units", "link"])
def test_it_does_the_rest_of_one_that_was_killed(node: Node, done: str) -> None:
    units = node.root / "etc/systemd/system"
    (units / f".{CRISHIM}.before").rename(units / CRISHIM)
    if done == "link":
        (node.root / "opt/partage/.before").rename(node.root / "opt/partage/current")
    assert node.run("now") == 0
    assert (node.in_force, node.is_on_trial) == ("1.0-g1", False)


def test_one_that_cannot_link_stays_for_the_next_failure(node: Node) -> None:
    (node.root / "opt/partage/.before").unlink()
    assert node.run("now") == 1
    assert (node.in_force, node.is_on_trial) == ("1.1-g2", True)
