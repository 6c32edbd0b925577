"""Simulated cards of one machine. `partage_simgpu` is a distribution of its own: this is imported where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_cli.machine.places import DRIVER
from partage_cli.machine.setup.decision import Decision
from partage_cli.machine.setup.errors import Unfit
from partage_simgpu import build, simgpud
from partage_simgpu.control import control
from partage_simgpu.description import Card, as_text, described
from partage_simgpu.driver_root import CONF, lay_out
from partage_simgpu.profiles import load_profile

NODE: Final = "machine"
"""By which the ids of simulated cards are made, so that they are the same after each `up`."""


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


def adopted(root: Path) -> simgpud.Simgpud:
    """The daemon that runs, which an earlier supervisor may have started, or a new one."""
    return simgpud.running(root / DRIVER) or simgpud.start(root / DRIVER)


def ask(root: Path) -> None:
    """Raises what a daemon answers that doesn't work."""
    control(root / DRIVER, "status")


def end(root: Path) -> None:
    """The daemon, which nothing uses any more."""
    if (running := simgpud.running(root / DRIVER)) is not None:
        with running:
            running.stop()
