"""The command line of an engine: Docker and Podman take the same arguments."""

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
    """The user's environment variables."""

    def done(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command without checking its status."""
        return self.program(self.command, *words)

    def said(self, *words: str) -> str:
        """Output of a command; raises with its error message if it fails."""
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
        """Ids of running containers."""
        return set(self.said("ps", "-q", "--no-trunc").split())

    def inspected(self, name: str) -> dict[str, Any]:
        (found,) = json.loads(self.said("inspect", name))
        return dict(found)

    def load(self, images: Mapping[str, Image]) -> None:
        """Load images by their short names, without a registry."""
        archive = self.machine.path(FOLDER) / "images.tar"
        archive.parent.mkdir(parents=True, exist_ok=True)
        write_archive(archive, images)
        self.said("load", "-q", "-i", f"{FOLDER}/images.tar")
        archive.unlink()

    def program(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run another program of the machine, with the user's environment for the engine."""
        env = {**os.environ, **self.env}
        words = (*self.machine.way_in, *argv)
        return subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=patience_s(), cwd="/", env=env
        )


def engine_programs(group: str) -> Programs:
    """The programs; skips the test if they can't be fetched."""
    try:
        return ensure(group, say=print)
    except MachineUnfit as unfit:
        pytest.skip(str(unfit))


def path_of(programs: Programs) -> str:
    """The user's PATH, with these programs first."""
    return ":".join([*sorted(str(folder) for folder in programs.folders), _SYSTEMS_PATH])


def make_libraries_known(machine: Machine, programs: Programs) -> None:
    """Register the programs' libraries with ldconfig: engines start each other without environment variables."""
    machine.write("/etc/ld.so.conf.d/engines.conf", "".join(f"{folder}\n" for folder in sorted(programs.folders)))
    machine.run("ldconfig", "-X")


def cgroup_of(machine: Machine, *below: str) -> str:
    """The parent cgroup of its containers, which is removed with the machine's slot; creates the cgroups `below` it."""
    slot, name = int(machine.place.run_folder.name), machine.place.name
    for each in (name, *(f"{name}/{folder}" for folder in below)):
        cgroups.make(slot, each)
    return cgroups.parent(slot, name)
