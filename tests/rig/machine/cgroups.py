"""The cgroups of a rig's containers, and their removal.

kubelet creates its containers' cgroups below a folder named after the rig and node. A client that names no parent, such
as critest, gets containerd's own /k8s.io, which another runtime of the machine may use too: there, only cgroups of
containers that the rig's containerd knew are ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit
from rig.patience import Wait

ROOT: Final = Path("/sys/fs/cgroup")
OURS: Final = "partage-rig"
OF_TESTS: Final = "partage-test-"
"""Prefix of the groups that tests make for themselves."""
_CONTAINERD: Final = "k8s.io"
_CPUSET: Final = ("cpuset.cpus", "cpuset.mems")


def parent(slot: int, node: str) -> str:
    return f"/{OURS}/{slot}/{node}"


def make(slot: int, node: str) -> None:
    """Create the parent of a node's containers, in which kubelet sets limits before there are any.

    A version 1 cpuset accepts no process until it has processors.
    """
    for hierarchy in hierarchies():
        folder = hierarchy
        for part in (OURS, str(slot), node):
            above, folder = folder, folder / part
            folder.mkdir(exist_ok=True)
            for name in _CPUSET:
                if (above / name).exists() and not (folder / name).read_text().strip():
                    (folder / name).write_text((above / name).read_text())


def remove(slot: int, containers: Iterable[str], *, shared: bool) -> None:
    """Remove all cgroups of the rig; their processes have ended or are about to.

    `shared`: also the folders that rigs share. Only the last rig may: another one's runc creates containerd's folder
    and then the container's in it, and fails if the first is gone by then.
    """
    for hierarchy in hierarchies():
        _remove_tree(hierarchy / OURS / str(slot))
        for container in containers:
            _remove_tree(hierarchy / _CONTAINERD / container)
        for folder in (OURS, _CONTAINERD) if shared else ():
            _remove_if_unused(hierarchy / folder)


def hierarchies() -> list[Path]:
    """Version 2 has one hierarchy, version 1 one for each group of controllers, some with links as aliases."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [entry for entry in ROOT.iterdir() if entry.is_dir() and not entry.is_symlink()]


def _remove_tree(folder: Path) -> None:
    for path, _, _ in os.walk(folder, topdown=False):
        _remove_patiently(Path(path))


def _remove_patiently(folder: Path) -> None:
    """Remove a cgroup, retrying: a killed process leaves it a moment after its parent is notified."""
    wait = Wait()
    while folder.exists():
        try:
            folder.rmdir()
        except OSError as busy:
            if not wait.left_s():
                raise MachineUnfit(f"cannot remove the cgroup {folder}: {busy.strerror}; what runs in it?") from busy
            time.sleep(0.02)


def _remove_if_unused(folder: Path) -> None:
    """Remove a folder shared with others, who may be creating something in it right now."""
    if any(entry.is_dir() for entry in folder.iterdir()) if folder.exists() else True:
        return
    try:
        folder.rmdir()
    except OSError:
        return
