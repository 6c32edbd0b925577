"""A node's machine: its namespaces, its file system, and how to enter it.

Programs enter it with nsenter, so they see the node's processes, mounts, network, host name and files, and end with it.
The host sees the node's files below /proc/<PID 1>/root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.errors import ComponentFailed, MachineUnfit
from rig.machine.addresses import NodeAddresses
from rig.machine.components import Component, Program
from rig.patience import patience_s

_TOOLS: Final = {
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}


def require_fit() -> None:
    """Raise a one-line error if something is missing."""
    if os.geteuid() != 0:
        raise MachineUnfit("the rig makes namespaces, mounts and network devices: run it as root")
    if missing := sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None}):
        raise MachineUnfit(f"the rig needs programs of the package(s) {', '.join(missing)}: install them")
    if "\toverlay" not in Path("/proc/filesystems").read_text():
        raise MachineUnfit("this kernel knows no overlay file system: load it (modprobe overlay)")


PID: Final = "pid"
"""The file in a node's own folder with the host's PID of its PID 1."""
_INIT: Final = Path(__file__).with_name("inside.py")
_NEW: Final = ("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child=KILL", "--")
_COPIED: Final = ("/etc", "/opt", "/run", "/var")
# Layers can't be on an overlay, and idmapped mounts need a disk file system.
_ON_DISK: Final = (
    "/run/containerd",
    "/run/nvidia",
    "/var/lib/containerd",
    "/var/lib/engines",
    "/var/lib/kubelet",
    "/var/lib/partage",
)
# A partage on the host itself is hidden from the node.
_HIDDEN: Final = ("/etc/partage", "/run/partage")
# kubelet sets the first three for the whole machine, which would affect all nodes and its owner; systemd sets the
# others.
_OWN_SYSCTLS: Final = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "fs/file-max", "fs/nr_open")


@dataclass(frozen=True)
class Place:
    """A node's location, and the host's paths that it sees unchanged."""

    name: str
    own: Path
    logs: Path
    run_folder: Path
    visible: tuple[Path, ...]
    init: Init | None = None
    """The program that becomes PID 1; without it, one that only reaps orphans."""


@dataclass(frozen=True)
class Init:
    argv: tuple[str, ...]
    cgroup: str
    """Its cgroup."""
    env: Mapping[str, str]
    hidden: tuple[str, ...] = ()
    """Paths of the host that it never sees, in addition to those hidden from all nodes."""


class Machine:
    def __init__(self, place: Place, addresses: NodeAddresses) -> None:
        self.place = place
        self.addresses = addresses
        self._spec = place.own / "spec.json"
        program = Program(
            name=place.name,
            argv=(sys.executable, "-I", str(_INIT), str(self._spec)),
            log=place.logs / f"{place.name}-machine.log",
            run_folder=place.run_folder,
            env=place.init.env if place.init else {},
            inside=_NEW,
        )
        self._init = Component(program, self._why_not_ready)
        self._pid = 0

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def component(self) -> Component:
        return self._init

    def start(self) -> None:
        """Create the namespaces and the file system; returns when programs can be started in it.

        A restarted machine has the contents of its disks.
        """
        self.place.own.mkdir(parents=True, exist_ok=True)
        (self.place.own / "ready").unlink(missing_ok=True)
        init = self.place.init
        visible = [str(self.place.run_folder), *(str(path) for path in self.place.visible if path.exists())]
        spec = {
            "name": self.place.name,
            "own": str(self.place.own),
            "visible": visible,
            "copied": _COPIED,
            "hidden": (*_HIDDEN, *(init.hidden if init else ())),
            "on_disk": _ON_DISK,
            "own_sysctls": _OWN_SYSCTLS,
            "init": init.argv if init else (),
            "cgroup": init.cgroup if init else "",
        }
        self._spec.write_text(json.dumps(spec))
        self._init.start()
        self._init.wait_ready()
        self._pid = self._init.pid
        (self.place.own / PID).write_text(str(self._pid))

    def stop(self) -> None:
        """End everything in it at once, by killing its PID namespace."""
        self._init.kill()

    @property
    def way_in(self) -> tuple[str, ...]:
        """A command prefix that enters the node."""
        return ("nsenter", "--target", str(self.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--")

    def path(self, inside: str) -> Path:
        """A file of the node, as a host path; symbolic links are resolved inside the node."""
        root = Path(f"/proc/{self.pid}/root")
        found, left = root, [part for part in inside.split("/") if part]
        while left:
            here = found / left.pop(0)
            if here.is_symlink():
                target = str(here.readlink())
                found = root if target.startswith("/") else found
                left = [part for part in target.split("/") if part] + left
            else:
                found = here
        return found

    def write(self, inside: str, text: str) -> None:
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *argv: str, timeout_s: float = 60.0) -> str:
        """Output of a command in the node; raises if it fails."""
        environment = {**os.environ, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run(
            [*self.way_in, *argv],
            capture_output=True,
            text=True,
            check=False,
            timeout=patience_s(timeout_s),
            env=environment,
        )
        if done.returncode:
            raise ComponentFailed(f"{self.place.name}: `{' '.join(argv)}` failed: {done.stderr.strip()}")
        return done.stdout

    def _why_not_ready(self) -> str | None:
        return None if (self.place.own / "ready").exists() else "its file system is not made"
