"""With which engines our runtime is registered, and whether it is in force there."""

from __future__ import annotations

import shutil

from msgspec import Struct

from partage_cli.docker.daemon_json import RUNTIME
from partage_cli.docker.engine import EngineName, docker_info
from partage_cli.docker.program import InstalledProgram
from partage_cli.docker.registration import DockerFile, PodmanFile


class EngineState(Struct, frozen=True, kw_only=True):
    engine: EngineName
    registered: bool
    in_force: bool = False
    default: bool = False
    """Whether it creates all containers that name no other runtime."""
    why: str = ""
    """Why it is registered but not in force."""


def states(docker: DockerFile, podman: PodmanFile, program: InstalledProgram) -> tuple[EngineState, ...]:
    """The state of every known engine."""
    return _docker_state(docker, program), _podman_state(podman, program)


def _docker_state(file: DockerFile, program: InstalledProgram) -> EngineState:
    if not file.is_registered:
        return EngineState(engine="docker", registered=False)
    info = docker_info()
    if info is None:
        why = "no dockerd answers"
    elif RUNTIME not in (info.runtimes or {}):
        why = "dockerd has not read its settings since; systemctl reload docker"
    else:
        why = _missing(program)
    is_default = info is not None and info.default == RUNTIME
    return EngineState(engine="docker", registered=True, in_force=not why, default=is_default, why=why)


def _podman_state(file: PodmanFile, program: InstalledProgram) -> EngineState:
    if not file.is_registered:
        return EngineState(engine="podman", registered=False)
    why = _missing(program) if shutil.which("podman") else "podman is not on the PATH"
    return EngineState(engine="podman", registered=True, in_force=not why, default=file.is_default, why=why)


def _missing(program: InstalledProgram) -> str:
    return "" if program.is_there else f"{program.path} is missing; partage docker install"
