"""Machines without a cluster, and a runtime without a proxy and without a kubelet.

critest needs to be its runtime's only client, and so do benchmarks of a proxy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rig import images
from rig.images import Image
from rig.machine import network, slots
from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean
from rig.machine.components import Component, serving
from rig.machine.slots import Slot
from rig.nodes.containerd import SOCKET
from rig.nodes.machine import Init, Machine, Place, require_fit
from rig.nodes.node import runtime
from rig.programs import Programs, ensure
from rig.registry import Registry

CHECKOUT = Path(__file__).parents[2]
_POD: Final = {
    "metadata": {"name": "pod", "namespace": "team", "uid": "1", "attempt": 0},
    "linux": {"security_context": {"namespace_options": {"network": 2}}},
}
_SLEEPS: Final = {"metadata": {"name": "main", "attempt": 0}, "command": ["/bin/sleep", "600"]}


@dataclass(frozen=True)
class LoneRuntime:
    """The runtime's location, and its parts."""

    machine: Machine
    containerd: Component
    registry: Registry
    programs: Programs
    socket: str = SOCKET

    @property
    def scratch(self) -> Path:
        """A folder with the same path inside and outside; it is removed with the runtime."""
        return self.machine.place.run_folder / "scratch"

    def crictl(self, *argv: str) -> str:
        endpoint = f"unix://{self.socket}"
        flags = ("--runtime-endpoint", endpoint, "--image-endpoint", endpoint, "--timeout", "30s")
        return self.machine.run(str(self.programs["crictl"]), *flags, *argv).strip()

    @contextmanager
    def container(self, image: str, **config: Any) -> Generator[str]:
        """The id of a running container with these CRI fields; it is removed with its pod."""
        whole = {**_SLEEPS, "image": {"image": image}, **config}
        files = [self.scratch / name for name in ("pod.json", "container.json")]
        self.scratch.mkdir(exist_ok=True)
        for file, content in zip(files, (_POD, whole), strict=True):
            file.write_text(json.dumps(content))
        self.crictl("pull", image)
        pod = self.crictl("runp", str(files[0]))
        try:
            container = self.crictl("create", pod, str(files[1]), str(files[0]))
            self.crictl("start", container)
            yield container
        finally:
            self.crictl("rmp", "--force", pod)

    def shell(self, container: str, script: str) -> str:
        return self.crictl("exec", "--sync", container, "/bin/sh", "-c", script)


@dataclass(frozen=True)
class LoneMachines:
    """Machines connected by a bridge, on which nothing runs."""

    slot: Slot
    machines: Sequence[Machine]

    def connect(self, machine: Machine) -> None:
        """Connect a machine, until it ends; all that were started before it are connected already."""
        before = self.machines[: self.machines.index(machine)]
        network.connect(Addresses(self.slot.number), machine, before, str(self.slot.folder))

    @contextmanager
    def registry(self, programs: Programs) -> Generator[Registry]:
        """A registry from which the machines pull every image."""
        registry = Registry(str(Addresses(self.slot.number).host))
        with serving(registry.component(programs["docker-registry"], self.slot.folder)):
            for machine in self.machines:
                registry.serve(machine.path("/etc/partage/certs.d"))
            yield registry


@contextmanager
def lone_machines(
    *names: str,
    visible: Iterable[Path] = (),
    keep_logs: Path | None = None,
    init: Callable[[Slot], Init] | None = None,
) -> Generator[LoneMachines]:
    """Machines that see the checkout and the `visible` paths of this machine, even below /etc, /opt, /run and /var."""
    require_fit()
    with slots.claimed(clean) as slot, ExitStack() as ends:
        addresses, seen = Addresses(slot.number), (CHECKOUT, *visible)
        network.make_bridge(addresses, str(slot.folder))
        made: list[Machine] = []
        lone = LoneMachines(slot, made)
        for number, name in enumerate(names, 1):
            own, logs = slot.folder / "nodes" / name, keep_logs or slot.folder / "logs"
            place = Place(name, own, logs, slot.folder, seen, init(slot) if init else None)
            made.append(Machine(place, addresses.node(number)))
            ends.callback(made[-1].stop)
            made[-1].start()
            lone.connect(made[-1])
        yield lone


@contextmanager
def lone_runtime(
    stock: Mapping[str, Image], *, say: Callable[[str], None], releases: Sequence[str] = ()
) -> Generator[LoneRuntime]:
    """A running runtime; its registry contains the stock, by name, and the sandbox image."""
    programs = ensure("default", *releases, say=say)
    with lone_machines("lone", visible=programs.folders) as lone, lone.registry(programs) as registry:
        for name, image in {images.SANDBOX: images.pause(), **stock}.items():
            registry.push(image, name)
        (machine,) = lone.machines
        with serving(runtime(machine, programs, registry)) as containerd:
            yield LoneRuntime(machine, containerd, registry, programs)
