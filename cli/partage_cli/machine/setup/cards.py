"""Real cards or simulated ones, and what lies on the disk for either: the driver, and the preload library for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from partage_cli.machine.places import DRIVER, LIBRARY
from partage_cli.machine.setup.decision import Decision
from partage_cli.machine.setup.errors import Unfit
from partage_cli.machine.setup.programs import Finder
from partage_gpu.node.nvidia_specs import NvidiaSpec
from partage_gpu.nvml.driver import Driver
from partage_gpu.nvml.facts import NodeFacts
from partage_isolation.library import install
from partage_isolation.library.errors import NotBuilt as NoLibrary
from partage_isolation.library.pages import install_page
from partage_plugins.errors import Refused
from partage_simgpu import build, simgpud
from partage_simgpu.description import Card, as_text, described
from partage_simgpu.driver_root import CONF, lay_out
from partage_simgpu.errors import NotBuilt as NoSimulation
from partage_simgpu.profiles import load_profile

NODE: Final = "machine"
"""By which the ids of simulated cards are made, so that they are the same after each `up`."""
_DRIVER_WITHIN_S: Final = 30.0
_AGAIN_S: Final = 0.5
_WAITING: Final = frozenset(("starts", "slow"))
Say = Callable[[str], None]
T = TypeVar("T")


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


def has_nvidias_spec(root: Path, say: Say) -> bool:
    """For CDI; one that can't be used is told, and passed over."""
    try:
        return NvidiaSpec(root).current() is not None
    except Refused as error:
        say(f"{error}; until then cards are attached by hand")
        return False


class Furniture:
    """Puts driver and library in their places; what must be built for it is."""

    def __init__(self, root: Path, finder: Finder) -> None:
        self._root, self._finder = root, finder

    def simulate(self, decision: Decision) -> None:
        """The simulated driver, as it is decided; raises `Unfit` while another one runs."""
        root = self._root / DRIVER
        sections = described(NODE, [Card(load_profile(decision.simulated))] * decision.cards)
        built = self._built(build.built, NoSimulation)
        if (running := simgpud.running(root)) is None:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
            lay_out(root, built, sections)
            return
        running.close()
        if (root / CONF).read_text() != as_text(sections):
            raise Unfit("other cards are simulated here; `partage down --all` first, then `partage up` with these")

    def library(self, driver_root: Path) -> str:
        """The version that new containers get."""
        folder = self._root / LIBRARY
        installed = self._built(lambda: install(folder, driver_root), NoLibrary)
        self._built(lambda: install_page(folder), NoLibrary)
        return installed.version

    def _built(self, make: Callable[[], T], failure: type[Exception]) -> T:
        """With a compiler got for it, where that is what is missing."""
        try:
            return make()
        except failure:
            if not self._finder.lacks_compiler():
                raise
            self._finder.get_compiler()
            return make()
