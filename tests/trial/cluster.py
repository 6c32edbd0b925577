"""A user's cluster before partage: nodes with systemd and cards, and nothing of partage.

Nodes have containerd and kubelet as services, NVIDIA's driver in a separate folder, and no Python. The cards are
simulated. Only the API server's Service has a working address, by a rule on each node.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_simgpu.driver_root import SIMGPUD
from rig import images
from rig.control.settings import APISERVER_PORT, ControlSettings
from rig.machine.addresses import SERVICES
from rig.nodes.machine import Machine
from rig.rig import Rig, RigSettings, Say, running
from support import systemd_node
from support.install_stage import give_address
from support.machine_image import with_driver_program
from support.simgpu_stage import DRIVER, install_driver

CUDA_PROGRAM: Final = "registry.example/cuda-program"
"""An image of the rig's registry, which runs a kernel, prints the time of that, and stays."""
RUNS: Final = "/usr/bin/first kernel && exec sleep 987654"
_PROGRAM: Final = Path(__file__).parents[1] / "real/chain/c/first.c"
_CARDS: Final = ("h100", "h100")
_DRIVER_UNIT: Final = f"""\
[Service]
ExecStart={DRIVER}/{SIMGPUD} {DRIVER}
Restart=always
"""


@dataclass(frozen=True)
class Trial:
    rig: Rig
    machines: Mapping[str, Machine]
    """The nodes, by name."""
    logs: Sequence[Path]
    """Logs of all services of each node."""


@contextmanager
def trial(nodes: Sequence[str], *, say: Say, keep_logs: Path | None = None) -> Generator[Trial]:
    """Ready nodes with these names."""
    settings = RigSettings(nodes={}, control=ControlSettings(partage=False))
    with running(settings, say=say, keep_logs=keep_logs) as rig:
        rig.registry.push(cuda_program(), CUDA_PROGRAM)
        logs = [rig.logs / f"{name}-services.log" for name in nodes]
        made = [
            systemd_node.made(rig, name, at, log) for at, (name, log) in enumerate(zip(nodes, logs, strict=True), 1)
        ]
        try:
            for at, machine in enumerate(made):
                systemd_node.boot(rig, machine, made[:at])
                _furnish(rig, machine)
            yield Trial(rig, dict(zip(nodes, made, strict=True)), logs)
        finally:
            for machine in made:
                machine.stop()


def cuda_program() -> images.Image:
    return with_driver_program("/usr/bin/first", _PROGRAM).starting("/bin/sh", "-c", RUNS)


def _furnish(rig: Rig, machine: Machine) -> None:
    """Install cards with their driver, a route to the API server's Service, no Python; then kubelet."""
    systemd_node.furnish(rig, machine)
    install_driver(machine, _CARDS, name=machine.place.name)
    machine.write(f"{systemd_node.UNITS}/simgpud.service", _DRIVER_UNIT)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "simgpud")
    give_address(machine, str(SERVICES[1]), f"{rig.addresses.host}:{APISERVER_PORT}")
    machine.run("sh", "-c", "for each in /usr/bin/python3*; do mount --bind /dev/null $each; done")
    systemd_node.serve(rig, machine)
