"""Podman on a machine that `partage up` made: Debian's, with nothing installed, and runc below it.

podman = engine_on(stage, {"tools": workloads()})
podman.run("--device", device, "tools", "sleep", "1000")
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from rig.errors import MachineUnfit
from rig.images import Image
from rig.patience import patience_s
from rig.programs import ensure
from support.machine_image import write_archive
from support.machine_stage import PARTAGE, MachineStage

_FOLDER: Final = "/opt/engine"
_CONFIG: Final = """\
[containers]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
conmon_path = ["{conmon}"]
events_logger = "file"
runtime = "{runtime}"
"""
_STORAGE: Final = """\
[storage]
driver = "vfs"
graphroot = "/var/lib/partage-engine"
runroot = "/run/engine"
"""
_POLICY: Final = '{"default": [{"type": "insecureAcceptAnything"}]}'


@dataclass(frozen=True)
class Podman:
    stage: MachineStage

    def done(self, *words: str) -> subprocess.CompletedProcess[str]:
        """However it ends."""
        return self._done("podman", *words)

    def run(self, *words: str) -> str:
        """What it prints; an error, with its words, where it fails."""
        done = self.done("run", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def end(self, *names: str) -> None:
        done = self.done("rm", "-f", "-t", "0", *names)
        assert done.returncode == 0, done.stderr

    def running(self) -> set[str]:
        """Ids."""
        return set(self.done("ps", "-q", "--no-trunc").stdout.split())

    def partage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Beside the engine, on the PATH of its user."""
        return self._done(*PARTAGE, *words)

    def _done(self, *argv: str) -> subprocess.CompletedProcess[str]:
        words = (*self.stage.machine.way_in, "env", f"PATH={_FOLDER}:{os.environ['PATH']}", *argv)
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=patience_s(), cwd="/")


def engine_on(stage: MachineStage, images: Mapping[str, Image], scratch: Path, *, runtime: str = "runc") -> Podman:
    """With these images, and that OCI runtime; a test that wants it is skipped where Podman can't be had."""
    try:
        programs = ensure("engine", say=print)
    except MachineUnfit as unfit:
        pytest.skip(str(unfit))
    machine = stage.machine
    folders = "\n".join(sorted({str(programs[name].parent) for name in programs}))
    machine.write("/etc/ld.so.conf.d/engine.conf", folders + "\n")
    machine.run("ldconfig", "-X")  # its monitor, too, starts it, without any variables
    machine.run("mkdir", "-p", _FOLDER)
    machine.run("ln", "-s", str(programs["podman@podman"]), f"{_FOLDER}/podman")
    machine.write("/etc/containers/containers.conf", _CONFIG.format(conmon=programs["conmon@conmon"], runtime=runtime))
    machine.write("/etc/containers/storage.conf", _STORAGE)
    machine.write("/etc/containers/policy.json", _POLICY)
    archive = write_archive(scratch / "images.tar", images)
    machine.path(f"{_FOLDER}/images.tar").write_bytes(archive.read_bytes())
    podman = Podman(stage)
    loaded = podman.done("load", "-q", "-i", f"{_FOLDER}/images.tar")
    assert loaded.returncode == 0, loaded.stderr
    return podman
