"""Lays out a simulated node on disk like an installed NVIDIA driver, so that NVIDIA's container tools accept it.

usr/lib/x86_64-linux-gnu/   libcuda and libnvidia-ml with the driver's version in their names, and their links
usr/bin/simgpud             the daemon of the same build, so that a node restarts with the build that created it
dev/                        device nodes, which can be opened and do nothing
proc/driver/nvidia/         the kernel driver's information files
etc/simgpu/node.conf        the description of the node
run/                        simgpud's sockets and lock
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from partage_simgpu.description import DRIVER, Section, as_text

LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"
CONF: Final = "etc/simgpu/node.conf"
SIMGPUD: Final = "usr/bin/simgpud"
_LINKED_AS: Final = {"libcuda.so": ("libcuda.so.1", "libcuda.so"), "libnvidia-ml.so": ("libnvidia-ml.so.1",)}
_CONTROL_DEVICES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_NULL: Final = os.makedev(1, 3)


def lay_out(root: Path, build: Path, sections: Sequence[Section]) -> None:
    """Creates everything that exists while simgpud is not running."""
    for folder in (LIBRARIES, "usr/bin", "dev", "etc/simgpu", "run/simgpu", "run/nvidia-persistenced"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    _libraries(root / LIBRARIES, build)
    shutil.copy2(build / "simgpud", root / SIMGPUD)
    (root / CONF).write_text(as_text(sections))
    cards = [section for section in sections if section.kind == "card"]
    for name in (*_CONTROL_DEVICES, *(f"nvidia{card.fields['minor']}" for card in cards)):
        _device(root / "dev" / name)
    _proc(root / "proc/driver/nvidia", cards)
    _open_to_all(root)


def _open_to_all(root: Path) -> None:
    """Overrides the umask: a user's programs would skip a library that the user cannot read."""
    for folder, _, names in os.walk(root):
        Path(folder).chmod(0o755)
        for file in (Path(folder, name) for name in names):
            if not file.is_symlink() and file.is_file():
                file.chmod(file.stat().st_mode | 0o444)


def _libraries(folder: Path, build: Path) -> None:
    for library, links in _LINKED_AS.items():
        target = f"{library}.{DRIVER}"
        if not (build / library).exists():  # a partial build, as used in development
            continue
        shutil.copy2(build / library, folder / target)
        for link in links:
            (folder / link).unlink(missing_ok=True)
            (folder / link).symlink_to(target)


def _device(path: Path) -> None:
    """Creates a device node if permitted (as root), otherwise a link to /dev/null, which can be opened too."""
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, _NULL)
        path.chmod(0o666)
    except PermissionError:
        path.symlink_to("/dev/null")


def _proc(folder: Path, cards: Sequence[Section]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "version").write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  simulated by partage\n")
    for card in cards:
        place = folder / "gpus" / str(card.fields["pci"])
        place.mkdir(parents=True, exist_ok=True)
        told = {
            "Model": card.fields["name"],
            "GPU UUID": card.fields["uuid"],
            "Bus Type": "PCIe",
            "Bus Location": card.fields["pci"],
            "Device Minor": card.fields["minor"],
        }
        (place / "information").write_text("".join(f"{key}: \t {value}\n" for key, value in told.items()))
