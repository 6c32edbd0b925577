"""What people type at an engine: Docker's command and Podman's take the same words."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from rig.errors import MachineUnfit
from rig.images import Image
from rig.machine import cgroups
from rig.nodes.machine import Machine
from rig.patience import patience_s
from rig.programs import Programs, ensure
from support.machine_image import write_archive

FOLDER: Final = "/opt/engines"
DATA: Final = "/var/lib/engines"
STATE: Final = "/run/engines"
_SYSTEMS_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Engine:
    machine: Machine
    command: str
    env: Mapping[str, str]
    """What its user has set."""

    def done(self, *words: str) -> subprocess.CompletedProcess[str]:
        """However it ends."""
        return self.program(self.command, *words)

    def said(self, *words: str) -> str:
        """What it prints; an error, with its words, where it fails."""
        done = self.done(*words)
        assert done.returncode == 0, f"{self.command} {' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def run(self, *words: str) -> str:
        return self.said("run", *words)

    def end(self, *names: str) -> None:
        self.said("rm", "-f", *names)

    def end_all(self) -> None:
        if names := self.said("ps", "-aq").split():
            self.end(*names)

    def running(self) -> set[str]:
        """Ids."""
        return set(self.said("ps", "-q", "--no-trunc").split())

    def inspected(self, name: str) -> dict[str, Any]:
        (found,) = json.loads(self.said("inspect", name))
        return dict(found)

    def load(self, images: Mapping[str, Image]) -> None:
        """Has these images, by their short names, without a registry."""
        archive = self.machine.path(FOLDER) / "images.tar"
        archive.parent.mkdir(parents=True, exist_ok=True)
        write_archive(archive, images)
        self.said("load", "-q", "-i", f"{FOLDER}/images.tar")
        archive.unlink()

    def program(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Another program of the machine, which finds the engine as its user does."""
        env = {**os.environ, **self.env}
        words = (*self.machine.way_in, *argv)
        return subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=patience_s(), cwd="/", env=env
        )


def engine_programs(group: str) -> Programs:
    """A test that wants them is skipped where they can't be had."""
    try:
        return ensure(group, say=print)
    except MachineUnfit as unfit:
        pytest.skip(str(unfit))


def path_of(programs: Programs) -> str:
    """Where programs of the machine's user are looked for, these first."""
    return ":".join([*sorted(str(folder) for folder in programs.folders), _SYSTEMS_PATH])


def make_libraries_known(machine: Machine, programs: Programs) -> None:
    """Libraries of the programs are found without any variable: engines start each other without."""
    machine.write("/etc/ld.so.conf.d/engines.conf", "".join(f"{folder}\n" for folder in sorted(programs.folders)))
    machine.run("ldconfig", "-X")


def cgroup_of(machine: Machine, *below: str) -> str:
    """The parent of its containers, which ends with the machine's slot. What engines make `below` is there already."""
    slot, name = int(machine.place.run_folder.name), machine.place.name
    for each in (name, *(f"{name}/{folder}" for folder in below)):
        cgroups.make(slot, each)
    return cgroups.parent(slot, name)
