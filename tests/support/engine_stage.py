"""A machine with simulated cards, a broker that no container runtime is beside, the agent, and Podman.

    with agent_up(1, say=print, scratch=folder) as stage:
        stage.podman.run("-e", "PARTAGE_SHARE=300", "tools", "true")

Containers are created by what stands for `partage-oci`; `stage.agent` can be stopped and killed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_plugins.vocabulary.places import INVENTORY_FILE, OCI_SOCKET
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, inside
from rig.programs import ensure
from support.isolation_stage import broker, install_library
from support.machine_image import workloads
from support.machine_stage import MACHINES_OWN, TESTS_OWN, MachineStage, machine_with_registry
from support.podman import Podman, engine_on
from support.simgpu_stage import DRIVER, install_driver, simgpud

PROGRAM: Final = "/opt/partage/partage-oci"
STAND_IN: Final = Path(__file__).parent / "node_programs/oci_runtime.py"
_COMMON: Final = ("--driver-root", DRIVER, "--node-name", "lone", "--log-format", "text")
_ENV: Final = {"PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class AgentStage(MachineStage):
    """Where `up` is the agent."""

    broker: Component
    podman: Podman

    @property
    def agent(self) -> Component:
        return self.up


def agent(*flags: str) -> Daemon:
    argv = (sys.executable, "-P", "-m", "partage_oci", *_COMMON, "--hook", PROGRAM, *flags)
    return Daemon("agent", argv, lambda machine: _why_no_file(machine, OCI_SOCKET), _ENV)


@contextmanager
def agent_up(
    cards: int, *, say: Callable[[str], None], scratch: Path, flags: tuple[str, ...] = ()
) -> Generator[AgentStage]:
    """A machine on which engines may start containers with shares of so many H100."""
    programs = ensure(*MACHINES_OWN, *TESTS_OWN, say=say)
    with machine_with_registry(programs) as (machine, registry):
        install_driver(machine, ["h100"] * cards)
        text = STAND_IN.read_text().replace("@runtime@", str(programs["runc"]))
        machine.write(PROGRAM, f"#!{sys.executable} -I\n{text}")
        machine.path(PROGRAM).chmod(0o755)
        install_library(machine)
        started = [
            inside(machine, each)
            for each in (simgpud(), broker("--runtime", "", node="lone"), _inventory(), agent(*flags))
        ]
        try:
            for each in started:
                each.start()
                each.wait_ready()
            _, served, _, up = started
            lone = MachineStage(machine, up, registry, programs)
            podman = engine_on(lone, {"tools": workloads()}, scratch, runtime=PROGRAM)
            yield AgentStage(machine, up, registry, programs, served, podman)
        finally:
            for each in reversed(started):
                each.kill()


def _inventory() -> Daemon:
    argv = (sys.executable, "-P", "-m", "partage_advertiser", "--no-cluster", *_COMMON)
    return Daemon("inventory", argv, lambda machine: _why_no_file(machine, INVENTORY_FILE), _ENV)


def _why_no_file(machine: Machine, path: str) -> str | None:
    return None if machine.path(f"/{path}").exists() else f"there is no /{path}"
