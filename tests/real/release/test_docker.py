"""From an empty machine and a release's folder alone to a Docker container with a share of a card."""

from __future__ import annotations

import subprocess
import time

import pytest

from rig.rig import CHECKOUT
from support.docker_machine import PLACES
from support.engines.docker import DEBIANS, Docker, dockerd_on
from support.engines.engine import engine_programs
from support.engines.machines import engine_machines
from support.machine_image import workloads
from support.machine_stage import ready_to_go_up
from support.release_folder import ReleaseFolder

LOGS = CHECKOUT / ".cache/test/rig-logs-release"
PART = "One machine, with Docker or Podman"
COMMAND = "/opt/partage-command/bin"
UP = "partage up"
TYPED = {
    "'partage[node,scheduler]'": "'partage[node,scheduler,simulated]'",
    "partage docker install": f"partage docker install {PLACES}",
    "IMAGE": "tools allocate --kind large --count 1",
}
"""Replacements that a reader without a card types, with Docker's files where the machine has them, and an image."""


@pytest.mark.timeout(900)
def test_the_commands_of_the_release_lead_to_a_container_with_a_share(release: ReleaseFolder) -> None:
    programs = engine_programs(DEBIANS)
    visible = {*programs.folders, release.path}
    command, env = (f"{COMMAND}/partage",), {"XDG_CACHE_HOME": "/var/cache"}
    with (
        engine_machines(visible=visible, keep_logs=LOGS) as (machine,),
        dockerd_on(machine, None, programs) as docker,
        ready_to_go_up(machine, ("--simulated", "h100"), command=command, env=env) as stage,
    ):
        docker.load({"tools": workloads()})
        began_s, said = time.monotonic(), ""
        for each in release.commands(PART):
            if each == UP:
                stage.start()
            else:
                said = typed(docker, release, each)
            print(f"{time.monotonic() - began_s:.1f} s: {each}")  # noqa: T201  for who measures
    assert "large" in said, said


def typed(docker: Docker, release: ReleaseFolder, command: str) -> str:
    """Output of the command in a root shell in that folder."""
    for written, instead in TYPED.items():
        command = command.replace(written, instead)
    path = f"PATH={COMMAND}:{docker.env['PATH']}"
    shell = ("sh", "-c", f"cd {release.path} && exec 2>&1 && {command}")
    done: subprocess.CompletedProcess[str] = docker.program("env", path, *shell)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout
