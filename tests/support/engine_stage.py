"""A machine with simulated cards, a broker without a container runtime, the agent, and Docker and Podman.

    with shares_on(machine, "h100") as stage:
        docker.run("--runtime", "partage", "-e", "PARTAGE_SHARE=300", "tools", "true")

`partage-oci`, registered with both engines, creates containers; `stage.agent` can be stopped and killed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from partage_plugins.api.places import ENGINES_FOLDER, INVENTORY_FILE, OCI_SOCKET
from partage_simgpu.build import built as built_simgpu
from rig.client.wait import until
from rig.machine.components import Component, serving
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, inside, why_no_answer
from support import oci_program
from support.bytecode import BYTECODE
from support.isolation_stage import broker, install_library, told_by
from support.simgpu_stage import DRIVER, install_driver, simgpud

RUNTIME: Final = "partage"
PROGRAM: Final = f"/opt/partage/{oci_program.NAME}"
VISIBLE: Final = (Path(sys.prefix), built_simgpu())
"""Paths that the machine must be able to see."""
_COMMON: Final = ("--driver-root", DRIVER, "--node-name", "lone", "--log-format", "text")
_FREE_WITHIN_S: Final = 30.0


@dataclass(frozen=True)
class SharesStage:
    machine: Machine
    broker: Component
    agent: Component

    def held(self) -> list[dict[str, Any]]:
        """The agent's records, in the order of ids."""
        found: list[dict[str, Any]] = []
        for each in sorted(self.machine.path(f"/{ENGINES_FOLDER}").glob("*.json")):
            with suppress(FileNotFoundError):  # deleted meanwhile
                found.append(json.loads(each.read_bytes()))
        return found

    def held_milli(self) -> dict[str, int]:
        """Share held on each card."""
        sums = Counter[str]()
        for record in self.held():
            sums.update({grant["card"]: grant["share"] for grant in record["grants"]})
        return dict(sums)

    def wait_nothing_held(self) -> None:
        until(
            "nothing is held any more",
            lambda: str(self.held() or told_by(self.machine).containers or "") or None,
            _FREE_WITHIN_S,
        )


def agent(*flags: str) -> Daemon:
    argv = (sys.executable, "-P", "-m", "partage_oci", *_COMMON, "--hook", PROGRAM, *flags)
    return Daemon("agent", argv, lambda machine: why_no_answer(machine, f"/{OCI_SOCKET}"), BYTECODE)


def install_program(machine: Machine, runtime: Path, *, at: str = PROGRAM, **settings: object) -> None:
    """Install `partage-oci`, configured with this runtime below it."""
    path = machine.path(at)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(oci_program.built(), path)
    lines = [f"{name} {value}\n" for name, value in {"runtime": runtime, **settings}.items()]
    machine.write(f"{at}.conf", "".join(lines))


@contextmanager
def shares_on(machine: Machine, *cards: str, flags: tuple[str, ...] = ()) -> Generator[SharesStage]:
    """Inside the context engines can start containers with shares of these cards."""
    install_driver(machine, cards)
    install_library(machine)
    daemons = (simgpud(), broker("--runtime", "", node="lone"), _inventory(), agent(*flags))
    with ExitStack() as stack:
        _, served, _, asked = [stack.enter_context(serving(inside(machine, each))) for each in daemons]
        yield SharesStage(machine, served, asked)


def _inventory() -> Daemon:
    argv = (sys.executable, "-P", "-m", "partage_advertiser", "--no-cluster", *_COMMON)
    return Daemon("inventory", argv, _why_no_inventory, BYTECODE)


def _why_no_inventory(machine: Machine) -> str | None:
    return None if machine.path(f"/{INVENTORY_FILE}").exists() else f"there is no /{INVENTORY_FILE}"
