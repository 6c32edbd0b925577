"""One machine without Kubernetes whose process 1 is a real systemd.

It has the least of units that a machine has: what a distribution starts at boot would be done to the machine that all
this runs on, such as emptying its /tmp.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.machine import cgroups, network
from rig.machine.addresses import Addresses
from rig.machine.slots import Slot
from rig.nodes.machine import Init, Machine
from rig.patience import patience_s
from rig.programs import Programs, ensure
from rig.registry import Registry
from support.machine_stage import MACHINES_OWN, PARTAGE, TESTS_OWN, machine_with_registry, up_env

_TARGETS: Final = ("sysinit", "basic", "local-fs", "network", "multi-user", "shutdown")
_ORDER: Final = {"basic": "sysinit.target", "multi-user": "basic.target"}
HIDDEN: Final = ("/etc/systemd", "/run/systemd", "/run/dbus", "/run/udev")
_SETTINGS: Final = "[Manager]\nLogTarget=console\nShowStatus=no\nDefaultTimeoutStopSec=20s\n"


@dataclass(frozen=True)
class SystemdStage:
    machine: Machine
    registry: Registry
    programs: Programs
    slot: Slot
    log: Path
    """Of all its services."""

    def partage(self, *words: str, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        argv = (*self.machine.way_in, "env", *(f"{k}={v}" for k, v in up_env().items()), *PARTAGE, *words)
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patience_s(timeout_s), cwd="/")

    def up(self, *words: str) -> str:
        """What it says on the way."""
        done = self.partage("up", *words)
        assert done.returncode == 0, done.stderr + self.told()
        return done.stderr

    def systemctl(self, *words: str) -> str:
        return self.machine.run("systemctl", *words).strip()

    def told(self) -> str:
        return "\n".join((self.log.read_text(errors="replace"), self.machine.component.tail(40)))

    def reboot(self) -> None:
        """All ends, and the machine starts with the same disks."""
        self.machine.stop()
        addresses, folder = Addresses(self.slot.number), str(self.slot.folder)
        until("its cable is gone", lambda: str(left) if (left := _cables(folder, addresses)) else None)
        self.machine.start()
        network.connect(addresses, self.machine, [], folder)
        self.wait_booted()

    def wait_booted(self) -> None:
        until("systemd has booted", self._why_not_booted)

    def _why_not_booted(self) -> str | None:
        self.machine.component.require_running()
        argv = (*self.machine.way_in, "systemctl", "is-active", "multi-user.target")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return None if done.stdout.strip() == "active" else f"{done.stdout} {done.stderr}"


@contextmanager
def systemd_machine(
    *, say: Callable[[str], None], keep_logs: Path, others: Iterable[Path] = ()
) -> Generator[SystemdStage]:
    """Beside what a test of `partage up` needs it sees these other folders."""
    programs = ensure(*MACHINES_OWN, *TESTS_OWN, "systemd", say=say)
    log = keep_logs / "services.log"
    slots: list[Slot] = []

    def init(slot: Slot) -> Init:
        slots.append(slot)
        units = base_units(slot.folder / "units", log)
        cgroups.make(slot.number, "lone")
        return Init(
            argv=(str(programs["systemd"]), "--unit=multi-user.target"),
            cgroup=cgroups.parent(slot.number, "lone"),
            env={"SYSTEMD_UNIT_PATH": f"/etc/systemd/system:{units}"},
            hidden=HIDDEN,
        )

    with machine_with_registry(programs, keep_logs, init, others) as (machine, registry):
        machine.path("/etc/systemd/system").mkdir(parents=True)
        stage = SystemdStage(machine, registry, programs, slots[0], log)
        stage.wait_booted()
        yield stage


def base_units(folder: Path, log: Path) -> Path:
    """What every unit leans on; all that services say goes to one file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    (folder / "service.d").mkdir(parents=True)
    (folder / "service.d/log.conf").write_text(f"[Service]\nStandardOutput=append:{log}\nStandardError=append:{log}\n")
    for name in _TARGETS:
        needs = f"Requires={_ORDER[name]}\nAfter={_ORDER[name]}\n" if name in _ORDER else ""
        (folder / f"{name}.target").write_text(f"[Unit]\nDescription={name}\nDefaultDependencies=no\n{needs}")
    return folder


def _cables(folder: str, addresses: Addresses) -> list[str]:
    return [name for name in network.devices_of(folder) if name != addresses.bridge]
