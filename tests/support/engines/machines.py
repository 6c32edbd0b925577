"""Machines for engines, with their own files, processes and network, joined by a bridge; nothing runs on them.

with engine_machines(2, visible=programs.folders) as (first, second): ...

An engine or a partage of this machine itself is neither seen nor touched. Everything on a machine ends with it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from rig.lone import CHECKOUT
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean
from rig.nodes.machine import Machine, Place, require_fit
from support.engines.engine import DATA

_LIBRARIES: Final = "/usr/local/lib"
"""Where `partage docker install` puts the runtime."""


@contextmanager
def engine_machines(
    count: int = 1, *, visible: Iterable[Path] = (), keep_logs: Path | None = None
) -> Generator[list[Machine]]:
    """Of this machine they see the checkout and what is visible, even below /etc, /opt, /run and /var."""
    require_fit()
    with slots.claimed(clean) as slot, ExitStack() as ends:
        addresses = Addresses(slot.number)
        network.make_bridge(addresses, str(slot.folder))
        machines: list[Machine] = []
        for index in range(1, count + 1):
            own = slot.folder / f"nodes/m{index}"
            place = Place(own.name, own, keep_logs or slot.folder / "logs", slot.folder, (CHECKOUT, *visible))
            machine = Machine(place, addresses.node(index))
            ends.callback(machine.stop)
            machine.start()
            _give_own_libraries(machine)
            network.connect(addresses, machine, machines, str(slot.folder))
            machine.write("/etc/resolv.conf", "")  # who looks for an image's registry hears at once that there is none
            machines.append(machine)
        yield machines


def _give_own_libraries(machine: Machine) -> None:
    """The folder is the host's otherwise; Python may be in it, so all is seen of it but a partage of the host."""
    upper, work = (f"{DATA}/libraries/{name}" for name in ("written", "work"))
    machine.run("mkdir", "-p", upper, work)
    machine.run("mknod", f"{upper}/partage", "c", "0", "0")  # as an overlay notes that something was removed
    layers = f"lowerdir={_LIBRARIES},upperdir={upper},workdir={work}"
    machine.run("mount", "-t", "overlay", "overlay", "-o", layers, _LIBRARIES)
