"""A machine with a real systemd as PID 1, containerd, and all daemons of a node as units of a tree.

There is no kubelet: `crictl` calls crishim as kubelet does, so any lost call is noticed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_cli.installation.places import CURRENT, TREES
from partage_cli.installation.tree import OUR_UNITS
from partage_isolation.library.objects import OBJECTS
from partage_isolation.library.objects import built as built_library
from partage_isolation.library.pages import built_page
from rig import images
from rig.client.wait import until
from rig.errors import ComponentFailed
from rig.machine.components import serving
from rig.nodes.machine import Machine
from rig.nodes.node import runtime
from rig.patience import patience_s
from rig.programs import Programs, ensure
from support.crishim import SOCKET
from support.crishim_stage import public_file
from support.systemd_stage import SystemdStage, systemd_machine
from support.trees import MARK, SEES_CHECKOUT, make_tree

UNITS: Final = "/etc/systemd/system"
UPGRADE_PID: Final = "/run/upgrade.pid"
BROKER, CRISHIM, ADVERTISER = (f"partage-{name}.service" for name in ("broker", "crishim", "advertiser"))
_WITHOUT_CLUSTER: Final = "[Service]\nEnvironment=PARTAGE_ADVERTISER_CLUSTER=false\n"
_SLEEPS: Final = ("sh", "-c", "trap exit TERM; sleep 3600 & wait")


@dataclass(frozen=True)
class UpgradeStage:
    systemd: SystemdStage
    programs: Programs
    library: Path

    @property
    def machine(self) -> Machine:
        return self.systemd.machine

    def tree(self, version: str, **instead: str) -> None:
        """Unpack another version; `instead` is by program, with underscores."""
        lines = {name.replace("_", "-"): text for name, text in instead.items()}
        make_tree(self.machine.path(f"/{TREES}"), version, instead=lines, library=self.library)

    def install(self, version: str) -> None:
        """Install as `partage node install` does, plus the unit of an advertiser."""
        self.tree(version)
        self.machine.path(f"/{CURRENT}").symlink_to(version)
        for unit in (*OUR_UNITS, ADVERTISER):
            self.machine.write(f"{UNITS}/{unit}", self.machine.path(f"/{TREES}/{version}/systemd/{unit}").read_text())
        self.machine.write(*SEES_CHECKOUT)
        self.machine.write(f"{UNITS}/{ADVERTISER}.d/cluster.conf", _WITHOUT_CLUSTER)
        self.systemd.systemctl("daemon-reload")
        self.systemd.systemctl("enable", "--quiet", *OUR_UNITS, ADVERTISER)
        self.systemd.systemctl("start", *OUR_UNITS, ADVERTISER)

    def upgrading(self, version: str) -> subprocess.Popen[str]:
        """Start an upgrade with that version's own program."""
        tree = f"/{TREES}/{version}"
        command = f"echo $$ >{UPGRADE_PID}; exec {tree}/bin/partage node upgrade --tree {tree}"
        argv = [*self.machine.way_in, "sh", "-c", command]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")

    def upgrade(self, version: str) -> tuple[int, str]:
        """Exit status and last line of an upgrade."""
        work = self.upgrading(version)
        _, said = work.communicate(timeout=patience_s())
        return work.returncode, said.strip().splitlines()[-1] if said.strip() else ""

    @property
    def in_force(self) -> str:
        return str(self.machine.path(f"/{TREES}").joinpath("current").readlink())

    def running_version(self, unit: str) -> str:
        """Version of the unit's running process; empty while systemd starts one."""
        pid = self.systemd.systemctl("show", "--property", "MainPID", "--value", unit)
        if pid == "0":
            return ""
        try:
            environment = self.machine.run("cat", f"/proc/{pid}/environ").split("\0")
        except ComponentFailed:  # it ended meanwhile
            return ""
        return next((each.removeprefix(f"{MARK}=") for each in environment if each.startswith(f"{MARK}=")), "")

    def crictl(self, *words: str) -> str:
        """Run crictl through crishim."""
        argv = (str(self.programs["crictl"]), "--runtime-endpoint", f"unix://{SOCKET}", "--timeout", "30s")
        return self.machine.run(*argv, "--image-endpoint", "unix:///run/containerd/containerd.sock", *words)

    def start_container(self, name: str) -> str:
        """Start a container; returns its id."""
        pod = {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "attempt": 0}, "linux": {}}
        container = {"metadata": {"name": "main"}, "image": {"image": "busybox"}, "command": list(_SLEEPS)}
        for what, text in (("pod", pod), ("container", container)):
            self.machine.write(f"/run/{name}-{what}.json", json.dumps(text))
        sandbox = self.crictl("runp", f"/run/{name}-pod.json").strip()
        self.crictl("pull", "busybox")
        made = self.crictl("create", sandbox, f"/run/{name}-container.json", f"/run/{name}-pod.json").strip()
        self.crictl("start", made)
        return made

    def process_of(self, container: str) -> tuple[int, str]:
        """PID and start time of its process."""
        found: dict[str, Any] = json.loads(self.crictl("inspect", container))
        pid = int(found["info"]["pid"])
        return pid, self.machine.run("cat", f"/proc/{pid}/stat").rpartition(")")[2].split()[19]


@contextmanager
def upgrade_stage(*, say: Callable[[str], None], keep_logs: Path) -> Generator[UpgradeStage]:
    """The stage with version 1 running."""
    own = ("containerd", "runc", "cni", "iptables", "cri-tools", "docker-registry", "busybox", "gcc", "musl")
    programs = ensure(*own, say=say)
    library = _library(keep_logs / "library")
    with (
        systemd_machine(say=say, keep_logs=keep_logs, visible=programs.folders) as systemd,
        systemd.lone.registry(programs) as registry,
    ):
        machine = systemd.machine
        registry.push(images.busybox(), "busybox")
        registry.push(images.pause(), images.SANDBOX)
        with serving(runtime(machine, programs, registry)):
            path, text = public_file(Ed25519PrivateKey.generate())
            machine.write(path, text)
            machine.run("mount", "-t", "tmpfs", "libraries", "/usr/local/lib")  # otherwise it is the host's
            stage = UpgradeStage(systemd, programs, library)
            stage.install("1.0-g1")
            until("crishim answers", lambda: _why_silent(stage))
            yield stage


def _library(folder: Path) -> Path:
    """Everything that a release contains prebuilt: units have no writable folders, and can't compile."""
    folder.mkdir(parents=True, exist_ok=True)
    built = built_library()
    for each in (*(built / name for name in OBJECTS), built_page()):
        shutil.copy(each, folder)
    return folder


def _why_silent(stage: UpgradeStage) -> str | None:
    try:
        stage.crictl("version")
    except ComponentFailed as error:
        return str(error)
    return None


def properties(stage: UpgradeStage, unit: str, *names: str) -> Mapping[str, str]:
    told = stage.systemd.systemctl("show", *(f"--property={name}" for name in names), unit)
    return dict(line.split("=", 1) for line in told.splitlines())
