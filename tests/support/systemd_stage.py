"""One machine without Kubernetes, with a real systemd as PID 1.

It has a minimal set of units: what a distribution starts at boot would affect the machine that all this runs on, such
as emptying its /tmp.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.lone import LoneMachines, lone_machines
from rig.machine import cgroups, network
from rig.machine.addresses import Addresses
from rig.nodes.machine import Init, Machine
from rig.patience import patience_s
from rig.programs import ensure
from support.machine_stage import PARTAGE, VISIBLE, up_env

_TARGETS: Final = ("sysinit", "basic", "local-fs", "network", "multi-user", "shutdown")
_ORDER: Final = {"basic": "sysinit.target", "multi-user": "basic.target"}


@dataclass(frozen=True)
class SystemdStage:
    machine: Machine
    lone: LoneMachines
    log: Path
    """Log of all its services."""

    def partage(self, *words: str, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        argv = (*self.machine.way_in, "env", *(f"{k}={v}" for k, v in up_env().items()), *PARTAGE, *words)
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patience_s(timeout_s), cwd="/")

    def up(self, *words: str) -> str:
        """Run `partage up`; returns its messages."""
        done = self.partage("up", *words)
        assert done.returncode == 0, done.stderr + self.told()
        return done.stderr

    def systemctl(self, *words: str) -> str:
        return self.machine.run("systemctl", *words).strip()

    def told(self) -> str:
        return "\n".join((self.log.read_text(errors="replace"), self.machine.component.tail(40)))

    def reboot(self) -> None:
        """Stop the machine and boot it with the same disks."""
        self.machine.stop()
        folder, bridge = str(self.lone.slot.folder), Addresses(self.lone.slot.number).bridge
        until("its cable is gone", lambda: ", ".join(set(network.devices_of(folder)) - {bridge}) or None)
        self.machine.start()
        self.lone.connect(self.machine)
        wait_booted(self.machine)


def wait_booted(machine: Machine) -> None:
    def why_not() -> str | None:
        machine.component.require_running()
        argv = (*machine.way_in, "systemctl", "is-active", "multi-user.target")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return None if done.stdout.strip() == "active" else f"{done.stdout} {done.stderr}"

    until("systemd has booted", why_not)


@contextmanager
def systemd_machine(
    *, say: Callable[[str], None], keep_logs: Path, visible: Iterable[Path] = ()
) -> Generator[SystemdStage]:
    ensure("systemd", say=say)
    log = keep_logs / "services.log"
    seen = (*VISIBLE, *visible)
    with lone_machines(
        "lone", visible=seen, keep_logs=keep_logs, init=lambda slot: init(slot.number, slot.folder, "lone", log)
    ) as lone:
        (machine,) = lone.machines
        machine.path("/etc/systemd/system").mkdir(parents=True)
        wait_booted(machine)
        yield SystemdStage(machine, lone, log)


def init(number: int, folder: Path, name: str, log: Path) -> Init:
    """Systemd as PID 1 of the machine with this name; the output of all its services goes to that log."""
    program = ensure("systemd", say=print)["systemd"]
    cgroups.make(number, name)
    units = base_units(folder / "units" / name, log)
    return Init(
        argv=(str(program), "--unit=multi-user.target"),
        cgroup=cgroups.parent(number, name),
        env={"SYSTEMD_UNIT_PATH": f"/etc/systemd/system:{units}"},
        hidden=("/etc/systemd", "/run/systemd", "/run/dbus", "/run/udev"),
    )


def base_units(folder: Path, log: Path) -> Path:
    """The targets that every unit needs, with the output of all services in one file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    (folder / "service.d").mkdir(parents=True)
    (folder / "service.d/log.conf").write_text(f"[Service]\nStandardOutput=append:{log}\nStandardError=append:{log}\n")
    for name in _TARGETS:
        needs = f"Requires={_ORDER[name]}\nAfter={_ORDER[name]}\n" if name in _ORDER else ""
        (folder / f"{name}.target").write_text(f"[Unit]\nDescription={name}\nDefaultDependencies=no\n{needs}")
    return folder
