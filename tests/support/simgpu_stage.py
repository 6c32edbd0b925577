"""Simulated cards on a machine of the rig, and NVIDIA's own programs with them.

The driver is in an operator's usual folder, /run/nvidia/driver. simgpud runs in the node's PID namespace, so that it
sees all its processes as a kernel driver does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from partage_simgpu.control import control
from partage_simgpu.description import Card, card_uuid, described
from partage_simgpu.driver_root import LIBRARIES, SIMGPUD, lay_out
from partage_simgpu.errors import NodeFailed
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon
from rig.programs import ensure
from support.simgpu import built, card

DRIVER: Final = "/run/nvidia/driver"
CDI: Final = "/var/run/cdi"
CDI_HOOK: Final = "/opt/nvidia/nvidia-cdi-hook"
"""Executable for all users, which is required: root of a pod with user namespaces is nobody on the node."""
RESOURCE: Final = "nvidia.com/gpu"
CARDS: Final = ("h100", "l4")
UUIDS: Final = tuple(card_uuid("rig", ordinal) for ordinal in range(len(CARDS)))
CLIENT: Final = Path(__file__).parents[1] / "real/simgpu/c/cards.c"
_DEVICE_PLUGINS: Final = "/var/lib/kubelet/device-plugins"


def install_driver(machine: Machine, cards: Sequence[str | Card] = CARDS, *, name: str = "rig") -> None:
    """Install the driver's files in its own folder. The cards' UUIDs are derived from the name."""
    root = machine.path(DRIVER)
    root.mkdir(parents=True, exist_ok=True)
    lay_out(root, built(), described(name, [card(one) if isinstance(one, str) else one for one in cards]))


def simgpud() -> Daemon:
    return Daemon("simgpud", (f"{DRIVER}/{SIMGPUD}", DRIVER), _why_no_driver)


def device_plugin() -> Daemon:
    """NVIDIA's device plugin, which finds cards by NVML and passes them to containerd by CDI."""
    programs = ensure("nvidia", say=print)
    flags = {
        "--driver-root": DRIVER,
        "--driver-root-ctr-path": DRIVER,
        "--device-discovery-strategy": "nvml",
        "--device-list-strategy": "cdi-cri",
        "--nvidia-cdi-hook-path": str(programs["nvidia-cdi-hook"]),
    }
    argv = (str(programs["nvidia-device-plugin"]), *(f"{flag}={value}" for flag, value in flags.items()))
    return Daemon("nvidia-device-plugin", argv, _why_no_plugin, {"LD_LIBRARY_PATH": f"{DRIVER}/{LIBRARIES}"})


def tell(machine: Machine, command: str) -> str:
    return control(machine.path(DRIVER), command)


def generate_cdi(machine: Machine, driver_root: str = DRIVER) -> dict[str, Any]:
    """Generate and install NVIDIA's CDI file for the cards of a driver on the machine."""
    programs = ensure("nvidia", say=print)
    hook = machine.path(CDI_HOOK)
    hook.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(programs["nvidia-cdi-hook"], hook)
    flags = (f"--driver-root={driver_root}", f"--nvidia-cdi-hook-path={CDI_HOOK}", "--format=json")
    machine.run(str(programs["nvidia-ctk"]), "cdi", "generate", *flags, f"--output={CDI}/nvidia.json")
    document: dict[str, Any] = json.loads(machine.path(f"{CDI}/nvidia.json").read_text())
    return document


def _why_no_driver(machine: Machine) -> str | None:
    try:
        tell(machine, "status")
    except (NodeFailed, FileNotFoundError) as error:
        return str(error)
    return None


def _why_no_plugin(machine: Machine) -> str | None:
    sockets = [path.name for path in machine.path(_DEVICE_PLUGINS).glob("nvidia*")]
    return None if sockets else f"it has no socket in {_DEVICE_PLUGINS}"
