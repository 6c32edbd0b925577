"""Debian's dockerd on a machine of the rig, with its containerd and the OCI runtimes that a test registers.

    with engine_machines() as (machine,), dockerd_on(machine, {"runtimes": {"partage": {"path": PATH}}}) as docker:
        docker.load({"tools": workloads()})
        docker.run("--rm", "--runtime", "partage", "tools", "true")

Containers have only a loopback network: nothing here needs more, and the daemon then needs no packet filter.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.errors import BuildFailed, MachineUnfit
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, inside, why_no_answer
from rig.programs import Programs, ensure
from support.engines.engine import DATA, STATE, Engine, cgroup_of, engine_programs, path_of

CONFIG: Final = f"{STATE}/daemon.json"
PID_FILE: Final = f"{STATE}/docker.pid"
SOCKET: Final = f"{STATE}/docker.sock"
_API_OF_COMMAND: Final = "1.41"
_INSTALLED: Final = ("dockerd@docker.io", "docker@docker.io", "containerd", "containerd-shim-runc-v2", "runc")
Settings = Mapping[str, object]
DEBIANS: Final = "docker"
NEWER: Final = "docker@newer"
"""Takes minutes to build, so only `make test-all` uses it."""


@dataclass(frozen=True)
class Docker(Engine):
    daemon: Component
    usual: Settings
    """The default contents of daemon.json."""

    def configure(self, settings: Settings) -> None:
        """Write daemon.json with these settings on top of the defaults; a start reads it, `reload` only some of it."""
        self.machine.write(CONFIG, json.dumps({**self.usual, **settings}))

    def reload(self) -> None:
        """Reload; returns when the daemon has read its file again."""
        before = self._reloads()
        self.daemon.send(signal.SIGHUP)
        until("dockerd has read its file again", lambda: None if self._reloads() > before else "no", logs=[self.daemon])

    def _reloads(self) -> int:
        return self.daemon.program.log.read_text(errors="replace").count("Reloaded configuration")


@cache
def packaged_or_installed() -> Programs:
    """Debian's programs, whose release the tests target; the machine's own if those can't be fetched."""
    try:
        return ensure("docker", say=print)
    except (MachineUnfit, BuildFailed):
        found = {name: shutil.which(name.split("@")[0]) for name in _INSTALLED}
        installed = {name: Path(path) for name, path in found.items() if path}
        if installed.keys() != found.keys():
            raise
        return Programs(installed)


@contextmanager
def dockerd_on(
    machine: Machine, settings: Settings | None = None, programs: Programs | None = None
) -> Generator[Docker]:
    """A running dockerd, by default Debian's. Its containers are removed at the end, the rest ends with the machine."""
    programs = programs or engine_programs(DEBIANS)
    usual: Settings = {
        "data-root": f"{DATA}/docker",
        "exec-root": f"{STATE}/docker",
        "pidfile": PID_FILE,
        "hosts": [f"unix://{SOCKET}"],
        "cgroup-parent": cgroup_of(machine),
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "storage-driver": "overlay2",
        "bridge": "none",
        "iptables": False,
        "ip-forward": False,
        "userland-proxy": False,
    }
    path = path_of(programs)
    program = programs["dockerd" if "dockerd" in programs else "dockerd@docker.io"]
    daemon = Daemon(
        "dockerd",
        (str(program), "--config-file", CONFIG),
        lambda machine: why_no_answer(machine, SOCKET),
        {"PATH": path, "DOCKER_MIN_API_VERSION": _API_OF_COMMAND},
    )
    component = inside(machine, daemon)
    env = {"PATH": path, "HOME": STATE, "DOCKER_HOST": f"unix://{SOCKET}"}
    docker = Docker(machine, "docker", env, component, usual)
    docker.configure(settings or {})
    component.start()
    try:
        component.wait_ready()
        yield docker
        docker.end_all()
    finally:
        component.stop()
