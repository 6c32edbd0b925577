"""`partage docker`: engines get the runtime, report whether it is in force, and have their settings restored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from partage_cli.docker import command as words
from rig.client.wait import until

BEFORE: Final = b'{ "log-driver":\t"local" }'
DOCKER: Final = """#!/bin/sh
case "$1" in
info) cat {info} ;;
ps) printf '%s' "$RUNNING" ;;
inspect) echo "abc $RUNTIME" ;;
esac
"""
DOCKERD: Final = """#!{python}
import json, pathlib, signal

def read_again(*_):
    ours = {{"partage": {{}}}} if "partage" in pathlib.Path("{settings}").read_text() else {{}}
    info = {{"ServerVersion": "20.10.24", "Runtimes": {{"runc": {{}}, **ours}}, "DefaultRuntime": "runc"}}
    pathlib.Path("{info}").write_text(json.dumps(info))

signal.signal(signal.SIGHUP, read_again)
pathlib.Path("{ready}").touch()
while True:
    signal.pause()
"""


class Machine:
    """A root with an engine on the PATH that prints what the test sets."""

    def __init__(self, root: Path) -> None:
        self.root, self.programs = root, root / "programs"
        self.programs.mkdir()
        self._info = root / "info.json"
        self.file = root / "etc/docker/daemon.json"
        self.drop_in = root / "etc/containers/containers.conf.d/50-partage.conf"
        self.program = root / "usr/local/lib/partage/oci/current/partage-oci"
        for name in ("docker", "runc"):
            self.puts(name)

    def puts(self, name: str) -> None:
        path = self.programs / name
        path.write_text(DOCKER.format(info=self._info))
        path.chmod(0o755)

    def says(self, *runtimes: str, default: str = "runc") -> None:
        info = {"ServerVersion": "20.10.24", "Runtimes": {name: {} for name in runtimes}, "DefaultRuntime": default}
        self._info.write_text(json.dumps(info))

    @contextmanager
    def dockerd(self, pid_file: str = "run/docker.pid") -> Generator[None]:
        """A daemon that has its settings read when it gets a signal."""
        self.says("runc")
        program = self.root / "dockerd"
        ready = self.root / "ready"
        program.write_text(DOCKERD.format(python=sys.executable, settings=self.file, info=self._info, ready=ready))
        program.chmod(0o755)
        path = self.root / pid_file
        path.parent.mkdir(exist_ok=True)
        with subprocess.Popen([program]) as process:
            path.write_text(f"{process.pid}\n")
            until("it takes signals", lambda: None if ready.exists() else "it has just begun")
            try:
                yield
            finally:
                process.kill()
        self._info.unlink()

    def runs(self, *argv: str) -> Result:
        return CliRunner().invoke(words.command, argv, obj=self.root, standalone_mode=False)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    program = tmp_path / "built"
    program.write_bytes(b"program")
    monkeypatch.setattr(words, "built", lambda: program)
    monkeypatch.setenv("PATH", f"{made.programs}:/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: _on(made.programs, name))
    return made


def _on(programs: Path, name: str) -> str | None:
    path = programs / name
    return str(path) if os.access(path, os.X_OK) else None


def test_docker_knows_it_and_gets_its_file_back_to_the_byte(machine: Machine) -> None:
    machine.file.parent.mkdir(parents=True)
    machine.file.write_bytes(BEFORE)
    machine.file.chmod(0o640)
    machine.runs("install")
    done = machine.runs("install")
    assert done.exception is None, done.output
    assert json.loads(machine.file.read_bytes()) == {
        "log-driver": "local",
        "runtimes": {"partage": {"path": str(machine.program)}},
    }
    assert machine.file.stat().st_mode & 0o777 == 0o640
    assert "no dockerd runs here; it takes this as it starts" in done.stderr
    assert (
        f"runtime {machine.programs / 'runc'}\nguard no\n" in machine.program.with_name("partage-oci.conf").read_text()
    )
    assert machine.runs("uninstall").exception is None
    assert machine.file.read_bytes() == BEFORE
    assert not machine.program.exists()


def test_as_the_default_one_it_guards_the_cards(machine: Machine) -> None:
    machine.runs("install", "--default")
    assert json.loads(machine.file.read_bytes())["default-runtime"] == "partage"
    assert "guard yes" in machine.program.with_name("partage-oci.conf").read_text()
    machine.runs("install", "--default", "--whole-cards")
    assert "guard no" in machine.program.with_name("partage-oci.conf").read_text()
    machine.runs("uninstall")
    assert not machine.file.exists()


def test_swarm_counts_only_cards_that_are_known(machine: Machine) -> None:
    done = machine.runs("install", "--swarm")
    assert "which cards there are is not known" in str(done.exception)
    assert not machine.file.exists()


def test_what_is_not_ours_stays(machine: Machine) -> None:
    machine.puts("podman")
    machine.drop_in.parent.mkdir(parents=True)
    machine.drop_in.write_text("[engine]\n")
    assert "not of this command; move it away first" in str(machine.runs("install", "--engine", "podman").exception)
    machine.file.parent.mkdir(parents=True)
    machine.file.write_text("{,}")
    assert "nothing was changed" in str(machine.runs("install", "--engine", "docker").exception)
    assert (machine.file.read_text(), machine.drop_in.read_text()) == ("{,}", "[engine]\n")


def test_a_guard_that_is_on_stays_where_the_rest_is_refused(machine: Machine) -> None:
    machine.runs("install", "--default")
    machine.file.write_text("{,}")
    assert "nothing was changed" in str(machine.runs("install").exception)
    assert "guard yes" in machine.program.with_name("partage-oci.conf").read_text()


def test_a_registration_is_undone_in_the_file_in_which_it_is(machine: Machine) -> None:
    other = machine.root / "other.json"
    machine.runs("install", "--daemon-json", str(other))
    refused = machine.runs("uninstall", "--daemon-json", str(machine.file))
    assert f"partage is registered in {other}" in str(refused.exception)
    assert "partage" in other.read_text()
    assert machine.runs("uninstall").exception is None
    assert not other.exists()


def test_podman_has_a_file_of_its_own(machine: Machine) -> None:
    machine.puts("podman")
    machine.runs("install", "--engine", "podman", "--default")
    assert 'runtime = "partage"\n\n[engine.runtimes]\npartage = ["' in machine.drop_in.read_text()
    machine.runs("uninstall")
    assert not machine.drop_in.exists()


def test_the_program_stays_while_containers_run_by_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.runs("install")
    monkeypatch.setenv("RUNNING", "abc")
    monkeypatch.setenv("RUNTIME", "partage")
    assert "stays: containers of docker run by it: 1" in machine.runs("uninstall").stderr
    assert machine.program.exists()
    monkeypatch.setenv("RUNTIME", "runc")
    machine.runs("uninstall")
    assert not machine.program.exists()


def test_a_dockerd_whose_pid_file_is_elsewhere_is_asked_for_before_anything_changes(machine: Machine) -> None:
    machine.says("runc")
    refused = str(machine.runs("install").exception)
    assert "give its --pid-file, and --daemon-json" in refused
    assert not machine.file.exists()
    assert not machine.program.exists()
    with machine.dockerd("elsewhere.pid"):
        named = ("--pid-file", str(machine.root / "elsewhere.pid"))
        assert machine.runs("install", *named).exception is None
        assert machine.runs("status").return_value == 0
        done = machine.runs("uninstall")
        assert done.exception is None, "its pid file is remembered"
        assert not machine.program.exists()
    assert not machine.file.exists()


def test_the_program_stays_while_dockerd_has_the_runtime(machine: Machine) -> None:
    machine.puts("podman")
    machine.runs("install", "--engine", "podman")
    machine.says("runc", "partage")
    assert "stays: dockerd still has the runtime" in machine.runs("uninstall").stderr
    assert machine.program.exists()
    machine.says("runc")
    assert not machine.runs("uninstall").stderr
    assert not machine.program.exists()


def test_a_dockerd_elsewhere_that_does_not_have_it_keeps_nobody_from_taking_it_out(machine: Machine) -> None:
    machine.runs("install")
    machine.says("runc", "partage")
    assert "give its --pid-file" in str(machine.runs("uninstall").exception)
    assert "partage" in machine.file.read_text()
    machine.says("runc")
    assert machine.runs("uninstall").exception is None
    assert not machine.file.exists()


def test_what_is_registered_and_not_in_force_is_told(machine: Machine) -> None:
    assert machine.runs("status").return_value == 0
    with machine.dockerd():
        machine.runs("install")
        assert machine.runs("status").return_value == 0
    machine.says("runc")
    done = machine.runs("status")
    assert done.return_value == 3
    assert "dockerd has not read its settings since; systemctl reload docker" in done.stdout
    machine.says("runc", "partage", default="partage")
    machine.program.unlink()
    (docker, podman) = json.loads(machine.runs("status", "-o", "json").stdout)
    assert docker["why"] == f"{machine.program} is missing; partage docker install"
    assert not podman["registered"]


def test_an_engine_that_is_not_here_is_named(machine: Machine) -> None:
    assert "podman is not on the PATH" in str(machine.runs("install", "--engine", "podman").exception)
