"""One node of a real cluster, run by systemd, whose runtime tests switch; a bundle is at /opt/bundle.

The bundle has the checkout's programs in the layout of an unpacked tree.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_cli.installation.status import Status
from rig.client.wait import until
from rig.control.settings import ControlSettings
from rig.machine import network
from rig.nodes.machine import Machine
from rig.patience import patience_s
from rig.programs import ensure
from rig.rig import CHECKOUT, Rig, RigSettings, running
from support import systemd_node
from support.bytecode import BYTECODE
from support.crishim_stage import public_file
from support.systemd_node import CONFIG, UNITS
from support.trees import SEES_CHECKOUT, a_tree

NODE: Final = "n1"
_PARTAGE_TOML: Final = (
    '[broker]\nlibrary_folder = "/opt/partage-library"\n[crishim]\nmount_roots = ["/opt/partage-library"]\n'
)
"""Not below /usr, which a node of the rig shares with the machine."""
VERSION: Final = "0.1.0-g000000000001"
BUNDLE: Final = "/opt/bundle"
EXTRA_ARGS: Final = "/etc/default/kubelet"
"""The file for additional kubelet flags."""
PARTAGE: Final = (sys.executable, "-P", "-m", "partage_cli", "node")
_MORTAL: Final = (sys.executable, "-P", str(Path(__file__).with_name("node_programs") / "mortal.py"))
_KILLED: Final = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""Statuses of a killed command, as the way into the node reports them."""
_DAEMONS: Final = {"partage-crishim": "partage_crishim", "partage-broker": "partage_isolation"}


@dataclass
class SwitchStage:
    rig: Rig
    machine: Machine
    log: Path
    """Log of all services of the node."""
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    untouched: list[str] = field(default_factory=list[str])
    """The node's files before anything of ours was installed."""

    def node(self, *words: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run `partage node …` there, without checking its status."""
        return _run(self.argv(*words), timeout_s)

    def killed_after(self, point: str, *words: str) -> None:
        """Run `partage node …` there and kill it at a named point of its code (`node_programs/mortal.py`)."""
        ended = _run((*self.machine.way_in, *_MORTAL, point, *words), 120)
        assert ended.returncode in _KILLED, f"{point}: {ended.returncode}: {ended.stderr}"

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `partage node …` there, to be killed; its output goes to a separate log."""
        with (self.rig.logs / "started.log").open("ab") as log:
            return subprocess.Popen(self.argv(*words), stdout=log, stderr=log, cwd="/", env=_environment())

    def kill(self, command: subprocess.Popen[bytes]) -> None:
        """Kill the command in the node, not just the process that entered it."""
        for child in Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        command.wait()

    def argv(self, *words: str) -> tuple[str, ...]:
        return (*self.machine.way_in, *PARTAGE, *words)

    def install(self) -> None:
        done = self.node("install", "--tree", BUNDLE)
        assert done.returncode == 0, done.stderr + self.told()

    def status(self) -> Status:
        done = self.node("status", "-o", "json")
        assert done.returncode == 0, done.stderr
        return Status(**json.loads(done.stdout))

    def told(self) -> str:
        return "\n".join((self.log.read_text(errors="replace")[-20_000:], self.machine.component.tail(40)))

    def systemctl(self, *words: str) -> str:
        return self.machine.run("systemctl", *words).strip()

    def kubelet_endpoint(self) -> str:
        """The endpoint in kubelet's configuration file."""
        return str(json.loads(self.machine.path(CONFIG).read_text())["containerRuntimeEndpoint"])

    def wait_ready(self, why: str = "the node is ready") -> None:
        until(why, lambda: self.rig.cluster.nodes.why_not_ready(NODE))

    def reboot(self) -> None:
        """Stop the machine and boot it with the same disks."""
        folder = str(self.rig.folder)
        self.machine.stop()
        mine = self.machine.addresses.veth
        until("its cable is gone", lambda: mine if mine in network.devices_of(folder) else None)
        self.start()

    def start(self) -> None:
        systemd_node.boot(self.rig, self.machine)

    def on_start_of_kubelet(self, script: str) -> None:
        """Run this script whenever kubelet starts with crishim as its runtime; kubelet does not start if it fails."""
        body = f"grep -q crishim {CONFIG} || exit 0\n{script}\n"
        self.machine.write("/etc/fault.sh", body)
        self.machine.write(f"{UNITS}/kubelet.service.d/fault.conf", "[Service]\nExecStartPre=/bin/sh /etc/fault.sh\n")
        self.systemctl("daemon-reload")

    def without_fault(self) -> None:
        shutil.rmtree(self.machine.path(f"{UNITS}/kubelet.service.d"), ignore_errors=True)
        self.machine.path("/etc/fault.sh").unlink(missing_ok=True)
        self.systemctl("daemon-reload")

    @contextmanager
    def kubelet_with(self, argument: str) -> Generator[None]:
        """Give kubelet a further argument inside the context, in the usual way."""
        self.machine.write(EXTRA_ARGS, f"KUBELET_EXTRA_ARGS={argument}\n")
        flag, _, value = argument.partition("=")
        folders = [self.machine.path(value)] if flag == "--config-dir" else []
        for each in folders:
            each.mkdir()
        self.systemctl("restart", "kubelet")
        try:
            yield
        finally:
            self.machine.path(EXTRA_ARGS).unlink()
            for each in folders:
                each.rmdir()
            self.systemctl("restart", "kubelet")

    def put_keys(self) -> None:
        path, content = public_file(self.key)
        self.machine.write(path, content)

    def processes(self, name: str) -> list[tuple[int, int]]:
        """PIDs and start times of container processes with a command of this name."""
        return systemd_node.processes(self.machine, name)

    def put_bundle(self) -> None:
        """Write the checkout's programs in the layout of an unpacked tree, outside the folders of installed trees."""
        files: dict[str, bytes] = {}
        for name, module in _DAEMONS.items():
            files[f"bin/{name}"] = f'#!/bin/sh\nexec {sys.executable} -P -m {module} "$@"\n'.encode()
        for unit in (CHECKOUT / "manifests/systemd").iterdir():
            text = unit.read_text().replace("/usr/bin/env ", "/opt/partage/current/bin/")
            files[f"systemd/{unit.name}"] = text.encode()
        a_tree(self.machine.path(BUNDLE), VERSION, files)
        self.machine.write(*SEES_CHECKOUT)


def files_of(machine: Machine) -> list[str]:
    """Everything that an installation may touch: kinds, modes, links and contents."""
    places = f"/etc /opt /usr/local/lib /var/lib/partage /run/partage {CONFIG}"
    look = f"find {places} -printf '%y %m %p %l\\n'; find {places} -type f -exec sha256sum {{}} +"
    return sorted(machine.run("sh", "-c", f"({look}) 2>/dev/null; true").splitlines())


@contextmanager
def switch_stage(*, say: Callable[[str], None], keep_logs: Path) -> Generator[SwitchStage]:
    """A ready node with containerd, and a bundle."""
    ensure("systemd", say=say)
    with running(RigSettings(nodes={}, control=ControlSettings()), say=say, keep_logs=keep_logs) as rig:
        log = rig.logs / "services.log"
        machine = systemd_node.made(rig, NODE, 1, log)
        stage = SwitchStage(rig, machine, log)
        try:
            stage.start()
            systemd_node.furnish(rig, machine)
            machine.write("/etc/partage/partage.toml", _PARTAGE_TOML)
            systemd_node.serve(rig, machine)
            stage.put_bundle()
            stage.put_keys()
            yield stage
        except BaseException as error:
            error.add_note(stage.told())
            raise
        finally:
            machine.stop()


def _run(argv: tuple[str, ...], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=patience_s(timeout_s), cwd="/", env=_environment()
    )


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **BYTECODE}
