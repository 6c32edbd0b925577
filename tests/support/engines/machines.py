"""Machines for engines, with their own files, processes and network, connected by a bridge; nothing runs on them.

    with engine_machines(2, visible=programs.folders) as (first, second): ...

They neither see nor affect an engine or a partage of this machine. Everything on a machine ends with it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rig.lone import lone_machines
from rig.nodes.machine import Machine
from support.engines.engine import DATA

_LIBRARIES: Final = "/usr/local/lib"
"""Where `partage docker install` puts the runtime."""


@contextmanager
def engine_machines(
    count: int = 1, *, visible: Iterable[Path] = (), keep_logs: Path | None = None
) -> Generator[list[Machine]]:
    """Machines that see the checkout and the `visible` paths of this machine, even below /etc, /opt, /run and /var."""
    names = [f"m{number}" for number in range(1, count + 1)]
    with lone_machines(*names, visible=visible, keep_logs=keep_logs) as lone:
        for machine in lone.machines:
            _give_own_libraries(machine)
            machine.write("/etc/resolv.conf", "")  # a lookup of an image's registry fails at once
        yield list(lone.machines)


def _give_own_libraries(machine: Machine) -> None:
    """Give the machine its own view of the host's folder, which may hold Python, without the host's partage."""
    upper, work = (f"{DATA}/libraries/{name}" for name in ("written", "work"))
    machine.run("mkdir", "-p", upper, work)
    machine.run("mknod", f"{upper}/partage", "c", "0", "0")  # an overlayfs whiteout hides the lower entry
    layers = f"lowerdir={_LIBRARIES},upperdir={upper},workdir={work}"
    machine.run("mount", "-t", "overlay", "overlay", "-o", layers, _LIBRARIES)
