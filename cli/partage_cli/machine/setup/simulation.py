"""Simulated cards of one machine. `partage_simgpu` is a separate distribution: import this only if it is installed."""

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
"""Seed of the simulated cards' ids, so that they are the same after each `up`."""


def simulate(root: Path, decision: Decision) -> None:
    """Install the simulated driver; raises `Unfit` while another one runs, and the errors of its build."""
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
    """The running daemon, which an earlier supervisor may have started, or else a new one."""
    return simgpud.running(root / DRIVER) or simgpud.start(root / DRIVER)


def ask(root: Path) -> None:
    """Raises the error of a daemon that doesn't work."""
    control(root / DRIVER, "status")


def end(root: Path) -> None:
    """Stop the daemon, once nothing uses it."""
    if (running := simgpud.running(root / DRIVER)) is not None:
        with running:
            running.stop()
