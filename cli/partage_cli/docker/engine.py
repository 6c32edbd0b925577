"""Queries the engines by their own programs, and makes dockerd reload its settings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from partage_plugins.errors import Refused

EngineName = Literal["docker", "podman"]
ENGINES: Final[tuple[EngineName, ...]] = ("docker", "podman")
_RUNTIME_OF: Final[Mapping[EngineName, str]] = {"docker": "{{.HostConfig.Runtime}}", "podman": "{{.OCIRuntime}}"}
PID_FILES: Final = ("run/docker.pid", "var/run/docker.pid")
_ASKED_S: Final = 20.0
_COLUMNS: Final = 3
_TAKEN_WITHIN_S: Final = 15.0
_AGAIN_S: Final = 0.2


class DockerInfo(Struct, frozen=True):
    """Output of `docker info --format '{{json .}}'`."""

    version: str = field(name="ServerVersion", default="")
    default: str = field(name="DefaultRuntime", default="")
    runtimes: Mapping[str, Any] | None = field(name="Runtimes", default=None)
    resources: tuple[Any, ...] | None = field(name="GenericResources", default=None)
    security: tuple[str, ...] | None = field(name="SecurityOptions", default=None)

    @property
    def is_rootless(self) -> bool:
        return any(each.startswith("name=rootless") for each in self.security or ())


def docker_info() -> DockerInfo | None:
    """None if no daemon answers, or there is no `docker`."""
    said = _said("docker", "info", "--format", "{{json .}}")
    try:
        info = msgspec.json.decode(said or b"", type=DockerInfo)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return info if info.version else None


def names(engine: EngineName, *, within_s: float = _ASKED_S) -> Mapping[str, tuple[str, str]]:
    """Name and image of each container, by id; empty if the engine is missing or does not answer."""
    words = ("ps", "--all", "--no-trunc", "--format", "{{.ID}}\t{{.Names}}\t{{.Image}}")
    said = _said(engine, *words, within_s=within_s) or b""
    lines = (line.split("\t") for line in said.decode(errors="replace").splitlines())
    return {words[0]: (words[1], words[2]) for words in lines if len(words) == _COLUMNS}


def running_by(runtime: str, engine: EngineName) -> Sequence[str] | None:
    """Ids of running containers of the runtime; None if they can't be determined."""
    ids = _said(engine, "ps", "--quiet", "--no-trunc")
    if not ids:
        return None if ids is None else ()
    each = _said(engine, "inspect", "--format", f"{{{{.Id}}}} {_RUNTIME_OF[engine]}", *ids.decode().split())
    if each is None:
        return None
    return [line.split()[0] for line in each.decode().splitlines() if line.split()[1:] == [runtime]]


def _said(engine: EngineName, *words: str, within_s: float = _ASKED_S) -> bytes | None:
    """An engine's output; None if it is missing, fails, or times out."""
    program = shutil.which(engine)
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  an engine of the machine
            (program, *words), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=within_s
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def daemon_pid(root: Path, named: Path | None = None) -> int | None:
    """The pid of the running dockerd, from its pid file; None if none runs."""
    for path in (named,) if named else (root / each for each in PID_FILES):
        try:
            pid = int(path.read_text())
            if Path(f"/proc/{pid}/comm").read_text().strip() == "dockerd":
                return pid
        except (OSError, ValueError):
            continue
    return None


def read_again(pid: int, taken: Callable[[DockerInfo], bool]) -> DockerInfo | None:
    """Makes dockerd reload its settings; None if it has not accepted them in time. Raises `Refused`."""
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        raise Refused(f"dockerd (process {pid}) has just ended; start it, which is enough") from None
    until = time.monotonic() + _TAKEN_WITHIN_S
    while time.monotonic() < until:
        info = docker_info()
        if info is not None and taken(info):
            return info
        time.sleep(_AGAIN_S)
    return None
