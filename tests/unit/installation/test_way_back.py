"""The script that restores kubelet's runtime, in the shells of small systems: killed anywhere, it resumes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from partage_cli.installation import turn
from partage_cli.installation.way_back import PutBack, script, units
from rig.programs import ensure

SHELLS = ("dash", "busybox")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if request.param == "busybox":
        return (str(ensure("busybox", say=print)["busybox"]), "sh")
    dash = shutil.which("dash")
    assert dash is not None
    return (dash,)


class Laid:
    """An armed switch, with one file that existed before and one that did not."""

    def __init__(self, root: Path, *, systemctl_status: int = 0) -> None:
        self.root = root
        self.config, self.dropin = root / "it's/config.yaml", root / "etc/zz-partage.conf"
        self.ready = self.config.with_name(".config.yaml.partage-before")
        self.staged = (
            self.config.with_name(".config.yaml.partage-staged"),
            root / "etc/.zz-partage.conf.partage-staged",
        )
        self.canary = root / "manifests/canary.json"
        for path, text in ((self.config, "new"), (self.ready, "old"), (self.dropin, "new"), (self.canary, "{}")):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for path in self.staged:
            path.write_text("new")
        self.told = root / "told"
        systemctl = root / "systemctl"
        systemctl.write_text(f'#!/bin/sh\necho "$*" >> {self.told}\nexit {systemctl_status}\n')
        systemctl.chmod(0o755)
        turn.arm(root, "then")
        self.script = root / "switch-back"
        self.script.write_text(
            script(
                [
                    PutBack(str(self.config), str(self.ready), str(self.staged[0])),
                    PutBack(str(self.dropin), "", str(self.staged[1])),
                ],
                canary=str(self.canary),
                kubelet="kubelet.service",
                systemctl=(str(systemctl),),
                root=str(root),
            )
        )

    def run(self, shell: tuple[str, ...]) -> int:
        return subprocess.run((*shell, str(self.script)), check=False, env={"PATH": "/usr/bin:/bin"}).returncode

    @property
    def is_back(self) -> bool:
        gone = (self.dropin, self.canary, *self.staged)
        return self.config.read_text() == "old" and not any(each.exists() for each in gone)


def test_an_armed_switch_goes_back_and_kubelet_is_restarted(tmp_path: Path, shell: tuple[str, ...]) -> None:
    laid = Laid(tmp_path)
    assert laid.run(shell) == 0
    assert laid.is_back
    assert turn.state(tmp_path) == "turned-back"
    assert "--no-block restart kubelet.service" in laid.told.read_text()


def test_a_confirmed_switch_is_left_alone(tmp_path: Path, shell: tuple[str, ...]) -> None:
    laid = Laid(tmp_path)
    assert turn.confirm(tmp_path)
    assert laid.run(shell) == 0
    assert (laid.config.read_text(), turn.state(tmp_path), laid.told.exists()) == ("new", "confirmed", False)


def test_what_a_killed_run_has_left_is_done_by_the_next(tmp_path: Path, shell: tuple[str, ...]) -> None:
    lines = Laid(tmp_path / "whole").script.read_text().splitlines()
    for count in range(len(lines)):
        laid = Laid(tmp_path / str(count))
        whole = laid.script.read_text()
        laid.script.write_text("\n".join(whole.splitlines()[:count]) + "\n")
        laid.run(shell)
        laid.script.write_text(whole)
        assert laid.run(shell) == 0
        assert laid.is_back
        assert "restart kubelet.service" in laid.told.read_text()
        assert turn.state(laid.root) == "turned-back"


def test_it_is_not_done_while_kubelet_could_not_be_restarted(tmp_path: Path, shell: tuple[str, ...]) -> None:
    laid = Laid(tmp_path, systemctl_status=1)
    assert laid.run(shell) == 1
    assert laid.is_back
    assert turn.state(tmp_path) == "turning-back"


def test_a_confirmation_that_comes_after_the_way_back_began_is_none(tmp_path: Path, shell: tuple[str, ...]) -> None:
    laid = Laid(tmp_path)
    laid.run(shell)
    assert not turn.confirm(tmp_path)


def test_systemds_own_checker_finds_nothing_in_its_units(tmp_path: Path) -> None:
    checker = shutil.which("systemd-analyze")
    if checker is None:
        pytest.skip("systemd-analyze is not on this machine")
    for name, text in units(kubelet="kubelet.service", after_s=120, root="/").items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        (checker, "verify", *map(str, tmp_path.iterdir())), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
