"""The programs that make a machine: in which order they start, with which words and variables. Pure.

Each finds its neighbours by files below the root and asks again until they are there, so any of them may die and come
back alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from partage_cli.machine.places import (
    CONTAINERD_CONFIG,
    CONTAINERD_SOCKET,
    DRIVER,
    LIBRARY,
)
from partage_cli.machine.setup.decision import Decision
from partage_simgpu.driver_root import SIMGPUD

SIMULATION: Final = "simgpud"
CONTAINERD: Final = "containerd"
BROKER: Final = "broker"
CRISHIM: Final = "crishim"
INVENTORY: Final = "inventory"
MANAGER: Final = "manager"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class Service:
    name: str
    about: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    tells_systemd: bool = True
    """That it is ready."""
    silences: tuple[bytes, ...] = ()
    """Lines that hold one of these are not passed on where it is supervised."""
    outlives: bool = False
    """Running containers need it as they need a kernel's driver, so it ends only when they do."""


def services(root: Path, decision: Decision, *, python: str, log: tuple[str, ...]) -> tuple[Service, ...]:
    """In the order of their start; `log` are the words that say how our daemons log."""
    common = ("--root", str(root), "--driver-root", f"/{DRIVER}" if decision.simulated else "/", *log)

    def ours(module: str, *words: str) -> tuple[str, ...]:
        return (python, "-P", "-m", module, *words, *common)

    containerd = Path(decision.programs.containerd)
    runtime = ("--runtime", f"/{CONTAINERD_SOCKET}")
    every = (
        Service(
            name=CONTAINERD,
            about="containers of this machine",
            argv=(str(containerd), "--config", str(root / CONTAINERD_CONFIG), "--log-level", "error"),
            env={"PATH": f"{containerd.parent}:{PATH}", **decision.proxies},
            silences=(b" level=info ", b" level=warning "),  # of its shims, whatever level it has itself
        ),
        Service(
            name=BROKER,
            about="memory and time of the cards",
            argv=ours("partage_isolation", "--library-folder", f"/{LIBRARY}", *runtime),
        ),
        Service(
            name=CRISHIM,
            about="starts containers with what they were given",
            argv=ours("partage_crishim", *runtime, "--mount-roots", f"/{LIBRARY}"),
            env={"PARTAGE_GPU_ATTACH": decision.attach},
        ),
        Service(
            name=INVENTORY,
            about="which cards there are, and how they are",
            argv=ours("partage_advertiser", "--no-cluster"),
        ),
        Service(
            name=MANAGER,
            about="pods of this machine",
            argv=ours("partage_cli.machine.manager", *_of_manager(decision)),
        ),
    )
    return (*((_simulation(root),) if decision.simulated else ()), *every)


def _of_manager(decision: Decision) -> tuple[str, ...]:
    ctr = ("--ctr", str(Path(decision.programs.containerd).with_name("ctr")))
    group = ("--group", decision.group) if decision.group else ()
    return (*ctr, *group, *(("--simulated",) if decision.simulated else ()))


def _simulation(root: Path) -> Service:
    driver = root / DRIVER
    return Service(
        name=SIMULATION,
        about="simulated cards",
        argv=(str(driver / SIMGPUD), str(driver)),
        tells_systemd=False,
        outlives=True,
    )
