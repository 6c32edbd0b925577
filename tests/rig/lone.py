"""A runtime with nothing in front of it and no kubelet beside it: one machine with containerd, and a registry.

critest wants to be its runtime's only client, and benchmarks of a proxy want to be its only client.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rig import images
from rig.images import Image
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean
from rig.machine.components import Component, serving
from rig.nodes.containerd import SOCKET
from rig.nodes.machine import Machine, Place, require_fit
from rig.nodes.node import runtime
from rig.programs import Programs, ensure
from rig.registry import Registry

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class LoneRuntime:
    """Where it is, and with what it was made."""

    machine: Machine
    containerd: Component
    registry: Registry
    programs: Programs
    socket: str = SOCKET

    @property
    def scratch(self) -> Path:
        """A folder at the same path inside and outside; it goes with the runtime."""
        return self.machine.place.run_folder / "scratch"


@contextmanager
def lone_runtime(
    stock: Mapping[str, Image], *, say: Callable[[str], None], releases: Sequence[str] = ()
) -> Generator[LoneRuntime]:
    """A runtime that serves; its registry holds the stock, by name, and the sandbox's image."""
    require_fit()
    programs = ensure("default", *releases, say=say)
    with slots.claimed(clean) as slot:
        addresses = Addresses(slot.number)
        network.make_bridge(addresses, str(slot.folder))
        registry = Registry(str(addresses.host))
        place = Place(
            "lone", slot.folder / "nodes/lone", slot.folder / "logs", slot.folder, (CHECKOUT, *programs.folders)
        )
        machine = Machine(place, addresses.node(1))
        with serving(registry.component(programs["docker-registry"], slot.folder)), _on(machine):
            for name, image in {images.SANDBOX: images.pause(), **stock}.items():
                registry.push(image, name)
            network.connect(addresses, machine, [], str(slot.folder))
            with serving(runtime(machine, programs, registry)) as containerd:
                yield LoneRuntime(machine, containerd, registry, programs)


@contextmanager
def _on(machine: Machine) -> Generator[None]:
    machine.start()
    try:
        yield
    finally:
        machine.stop()
