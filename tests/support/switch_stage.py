"""One node of a real cluster that systemd keeps, to be switched; a bundle stands ready below /opt/bundle.

It has the checkout's programs in the shape of an unpacked tree.
"""

from __future__ import annotations

import hashlib
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
from support.trees import SEES_CHECKOUT

NODE: Final = "n1"
_PARTAGE_TOML: Final = (
    '[broker]\nlibrary_folder = "/opt/partage-library"\n[crishim]\nmount_roots = ["/opt/partage-library"]\n'
)
"""Below /usr a node of the rig has what the machine has."""
VERSION: Final = "0.1.0-g000000000001"
BUNDLE: Final = "/opt/bundle"
EXTRA_ARGS: Final = "/etc/default/kubelet"
"""Where people put flags of kubelet."""
PARTAGE: Final = (sys.executable, "-P", "-m", "partage_cli", "node")
_MORTAL: Final = (sys.executable, "-P", str(Path(__file__).with_name("node_programs") / "mortal.py"))
_KILLED: Final = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""As the way into the node tells it."""
_DAEMONS: Final = {"partage-crishim": "partage_crishim", "partage-broker": "partage_isolation"}


@dataclass
class SwitchStage:
    rig: Rig
    machine: Machine
    log: Path
    """Of all services of the node."""
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    untouched: list[str] = field(default_factory=list[str])
    """Its files before anything of ours was installed."""

    def node(self, *words: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """`partage node …` there, however it ends."""
        return _run(self.argv(*words), timeout_s)

    def killed_after(self, point: str, *words: str) -> None:
        """`partage node …` there, which is killed at that point of its own (`node_programs/mortal.py`)."""
        ended = _run((*self.machine.way_in, *_MORTAL, point, *words), 120)
        assert ended.returncode in _KILLED, f"{point}: {ended.returncode}: {ended.stderr}"

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        """`partage node …` there, to be killed; what it says is in a log of its own."""
        with (self.rig.logs / "started.log").open("ab") as log:
            return subprocess.Popen(self.argv(*words), stdout=log, stderr=log, cwd="/", env=_environment())

    def kill(self, command: subprocess.Popen[bytes]) -> None:
        """As the kernel would: the one in the node, not only the way in."""
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
        """By its configuration file."""
        return str(json.loads(self.machine.path(CONFIG).read_text())["containerRuntimeEndpoint"])

    def wait_ready(self, why: str = "the node is ready") -> None:
        until(why, lambda: self.rig.cluster.nodes.why_not_ready(NODE))

    def reboot(self) -> None:
        """All ends, and the machine starts with the same disks."""
        folder = str(self.rig.folder)
        self.machine.stop()
        mine = self.machine.addresses.veth
        until("its cable is gone", lambda: mine if mine in network.devices_of(folder) else None)
        self.start()

    def start(self) -> None:
        systemd_node.boot(self.rig, self.machine)

    def on_start_of_kubelet(self, script: str) -> None:
        """What befalls the node when a kubelet starts that is told to speak to crishim; its status is that script's."""
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
        """Kubelet has that argument too, as people give it one."""
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
        """Of containers that run a command of this name: process ids, each with the time of its start."""
        return systemd_node.processes(self.machine, name)

    def put_bundle(self) -> None:
        """The checkout's programs in the shape of an unpacked tree, at a place that is none of a tree's."""
        files: dict[str, tuple[str, int]] = {"VERSION": (f"{VERSION}\n", 0o644)}
        for name, module in _DAEMONS.items():
            files[f"bin/{name}"] = (f'#!/bin/sh\nexec {sys.executable} -P -m {module} "$@"\n', 0o755)
        for unit in (CHECKOUT / "manifests/systemd").iterdir():
            text = unit.read_text().replace("/usr/bin/env ", "/opt/partage/current/bin/")
            files[f"systemd/{unit.name}"] = (text, 0o644)
        lines: list[str] = []
        for path, (text, mode) in sorted(files.items()):
            self.machine.write(f"{BUNDLE}/{path}", text)
            self.machine.path(f"{BUNDLE}/{path}").chmod(mode)
            lines.append(f"{mode:04o} {hashlib.sha256(text.encode()).hexdigest()} {path}\n")
        self.machine.write(f"{BUNDLE}/MANIFEST", "".join(lines))
        self.machine.write(*SEES_CHECKOUT)


def files_of(machine: Machine) -> list[str]:
    """All that an installation may touch: kinds, modes, links and contents."""
    places = f"/etc /opt /usr/local/lib /var/lib/partage /run/partage {CONFIG}"
    look = f"find {places} -printf '%y %m %p %l\\n'; find {places} -type f -exec sha256sum {{}} +"
    return sorted(machine.run("sh", "-c", f"({look}) 2>/dev/null; true").splitlines())


@contextmanager
def switch_stage(*, say: Callable[[str], None], keep_logs: Path) -> Generator[SwitchStage]:
    """A node that is ready, with containerd, and a bundle beside it."""
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
