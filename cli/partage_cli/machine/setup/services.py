"""The daemons of a machine, in their start order, with their command lines. Pure.

Each finds the others by files below the root and retries until they exist, so any of them can restart alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_cli.machine.places import DRIVER, LIBRARY, SIMGPUD

SIMULATION: Final = "simgpud"
BROKER: Final = "broker"
INVENTORY: Final = "inventory"
AGENT: Final = "agent"


@dataclass(frozen=True, kw_only=True)
class Service:
    name: str
    about: str
    argv: tuple[str, ...]
    tells_systemd: bool = True
    """Whether it notifies systemd when it is ready."""
    outlives: bool = False
    """Running containers need it like a kernel driver, so it is stopped only after they have ended."""


def services(root: Path, *, simulated: bool, python: str, log: tuple[str, ...]) -> tuple[Service, ...]:
    """The services in start order; `log` are the logging options of our daemons."""
    common = ("--root", str(root), "--driver-root", f"/{DRIVER}" if simulated else "/", *log)

    def ours(module: str, *words: str) -> tuple[str, ...]:
        return (python, "-P", "-m", module, *words, *common)

    every = (
        Service(
            name=BROKER,
            about="memory and time of the cards",
            argv=ours("partage_isolation", "--library-folder", f"/{LIBRARY}", "--runtime", ""),
        ),
        Service(
            name=INVENTORY,
            about="which cards there are, and how they are",
            argv=ours("partage_advertiser", "--no-cluster"),
        ),
        Service(
            name=AGENT,
            about="which container of Docker or Podman gets which card",
            argv=ours("partage_oci"),
        ),
    )
    return (*((_simulation(root),) if simulated else ()), *every)


def _simulation(root: Path) -> Service:
    return Service(
        name=SIMULATION,
        about="simulated cards",
        argv=(str(root / SIMGPUD), str(root / DRIVER)),
        tells_systemd=False,
        outlives=True,
    )
