"""Real cards or simulated ones, and what lies on the disk for either: the driver, and the preload library for it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from partage_cli.machine.places import DRIVER, LIBRARY
from partage_cli.machine.setup.decision import Decision
from partage_cli.machine.setup.errors import Unfit
from partage_gpu.nvml.driver import Driver
from partage_gpu.nvml.facts import NodeFacts
from partage_isolation.library import install
from partage_isolation.library.pages import install_page
from partage_simgpu import build, simgpud
from partage_simgpu.description import Card, as_text, described
from partage_simgpu.driver_root import CONF, lay_out
from partage_simgpu.profiles import load_profile

NODE: Final = "machine"
"""By which the ids of simulated cards are made, so that they are the same after each `up`."""
_DRIVER_WITHIN_S: Final = 30.0
_AGAIN_S: Final = 0.5
_WAITING: Final = frozenset(("starts", "slow"))


def real_cards(driver_root: Path) -> int:
    """How many NVML tells of; 0 without a driver. An idle driver takes seconds to find them. Raises `Unfit`."""
    driver = Driver(driver_root, wake=lambda: None)
    until = time.monotonic() + _DRIVER_WITHIN_S
    try:
        while True:
            look = driver.look()
            if isinstance(look, NodeFacts):
                return len(look.cards)
            if look.kind in {"no-library", "no-driver"}:
                return 0
            if look.kind not in _WAITING or time.monotonic() > until:
                raise Unfit(f"{look.sentence}; mend the driver, or say --simulated h100 to do without it")
            time.sleep(_AGAIN_S)
    finally:
        driver.close()


def simulate(root: Path, decision: Decision) -> None:
    """The simulated driver, as it is decided; raises `Unfit` while another one runs, and what its build raises."""
    folder = root / DRIVER
    sections = described(NODE, [Card(load_profile(decision.simulated))] * decision.cards)
    built = build.built()
    if (running := simgpud.running(folder)) is None:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        lay_out(folder, built, sections)
        return
    running.close()
    if (folder / CONF).read_text() != as_text(sections):
        raise Unfit("other cards are simulated here; `partage down --all` first, then `partage up` with these")


def install_library(root: Path, decision: Decision) -> str:
    """The version that new containers get; raises what its build raises."""
    folder = root / LIBRARY
    installed = install(folder, root / DRIVER if decision.simulated else root)
    install_page(folder)
    return installed.version
