"""Cleans up what a rig left on the machine, after an orderly stop as well as after a kill long ago.

It needs no state of the owner: everything is found by the slot's names. A node's processes, mounts and inner devices
end with its PID 1, so what is left are the owner's other processes, the devices on the host, and cgroups. The slot
removes the run folder itself.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit
from rig.machine import cgroups, network
from rig.machine.addresses import Addresses
from rig.machine.components import MARK
from rig.machine.slots import Slot, owners
from rig.patience import Wait

_TASKS: Final = "nodes/*/disk/run/containerd/io.containerd.runtime.v2.task/k8s.io/*"


def clean(slot: Slot) -> None:
    _end_processes(slot.folder)
    network.remove(Addresses(slot.number), str(slot.folder))
    is_last = owners(slot.base).keys() <= {slot.number}
    cgroups.remove(slot.number, [task.name for task in slot.folder.glob(_TASKS)], shared=is_last)


def processes_of(folder: Path) -> list[int]:
    """PIDs of everything that a rig with this run folder started, by their environment's mark; zombies have none."""
    mark = f"{MARK}={folder}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and mark in _environment(pid).split(b"\0")]


def _end_processes(folder: Path) -> None:
    wait = Wait()
    while left := processes_of(folder):
        if not wait.left_s():
            raise MachineUnfit(f"processes {left} of {folder} do not end after SIGKILL")
        for pid in left:
            _kill(pid)
        time.sleep(0.02)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended; another user's process is not ours
        return b""
