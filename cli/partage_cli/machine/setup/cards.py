"""Real cards, and the preload library for real or simulated ones."""

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

_DRIVER_WITHIN_S: Final = 30.0
_AGAIN_S: Final = 0.5
_WAITING: Final = frozenset(("starts", "slow"))


def real_cards(driver_root: Path) -> int:
    """Number of cards in NVML; 0 without a driver. An idle driver needs seconds to find them. Raises `Unfit`."""
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


def install_library(root: Path, decision: Decision) -> str:
    """Install the preload library; returns the version for new containers. Raises the errors of its build."""
    folder = root / LIBRARY
    installed = install(folder, root / DRIVER if decision.simulated else root)
    install_page(folder)
    return installed.version
