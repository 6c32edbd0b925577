"""A machine of the rig with Docker, on which an operator runs commands; `partage up` can be started.

    with docker_machine() as machine:
        machine.stage.start()
        machine.types(f"partage docker install {PLACES}")
        machine.types("docker run --runtime partage -e PARTAGE_SHARE=300 IMAGE")

Nothing of it reaches the host.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.built_once import shared
from support.engines.docker import CONFIG, PID_FILE, Docker, dockerd_on, packaged_or_installed
from support.engines.machines import engine_machines
from support.machine_stage import MachineStage, ready_to_go_up
from support.simgpu import built as built_simgpu

PLACES: Final = f"--daemon-json {CONFIG} --pid-file {PID_FILE}"
"""Where the machine's dockerd has the files that others have below /etc and /run."""
_COMMANDS: Final = Path(sys.prefix) / "bin"


@dataclass(frozen=True)
class DockerMachine:
    docker: Docker
    stage: MachineStage

    def types(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in root's shell without checking its status; stderr is merged into stdout."""
        env = (f"PATH={_COMMANDS}:{self.docker.env['PATH']}", f"XDG_CACHE_HOME={shared().parents[1]}")
        return self.docker.program("env", *env, "sh", "-c", f"exec 2>&1; {command}")


@contextmanager
def docker_machine(keep_logs: Path | None = None) -> Generator[DockerMachine]:
    """A machine with a running Docker; partage is not started yet, and will have one simulated H100."""
    programs = packaged_or_installed()
    visible = {*programs.folders, Path(sys.prefix), built_simgpu()}
    with (
        engine_machines(visible=visible, keep_logs=keep_logs) as (machine,),
        dockerd_on(machine, {"live-restore": True}, programs) as docker,
        ready_to_go_up(machine, ("--simulated", "h100")) as stage,
    ):
        yield DockerMachine(docker, stage)
