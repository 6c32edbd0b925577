"""Whether this machine can carry a rig, asked before anything is made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit

_TOOLS: Final = {
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}


def require_fit() -> None:
    """Says in one line what is missing, if anything is."""
    if os.geteuid() != 0:
        raise MachineUnfit("the rig makes namespaces, mounts and network devices: run it as root")
    if missing := sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None}):
        raise MachineUnfit(f"the rig needs programs of the package(s) {', '.join(missing)}: install them")
    if "\toverlay" not in Path("/proc/filesystems").read_text():
        raise MachineUnfit("this kernel knows no overlay file system: load it (modprobe overlay)")
